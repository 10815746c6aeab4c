-- Writes the counter of tokens. It outlives the last grant by `keep` ms ('0':
-- for ever). A counter without an expiry is Redisson's, and gets none. The
-- counter tells the time of the last grant, so its expiry is set only by the
-- first grant of each half day.
--@takes keep
--@needs TOKEN last n now
--@defines keep
local keep=$keep
if keep=='0' then
  redis.call('set',TOKEN,string.format('%.0f',n))
elseif last<now and last>=now-now%43200000000 and keep+0<=86400000 or
  last>0 and redis.call('pttl',TOKEN)==-1 then
  redis.call('set',TOKEN,string.format('%.0f',n),'keepttl')
else
  redis.call('set',TOKEN,string.format('%.0f',n),'px',keep+43200000)
end
