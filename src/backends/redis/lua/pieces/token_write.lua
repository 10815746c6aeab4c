-- Writes the counter of tokens. It outlives the last grant by `keep` ms, or
-- never expires if `keep` is '0'. A counter without an expiry belongs to
-- Redisson, and gets none. The counter contains the time of the last grant, so
-- only the first grant of each half day needs to set the expiry.
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
