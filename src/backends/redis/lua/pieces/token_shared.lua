-- Sets `n` to a token that is not below any exclusive token so far, and below
-- the next one. `keep` is how long the counter is kept, in ms ('0': for ever).
--@takes keep
--@needs TOKEN now
--@defines keep n
local n,keep=redis.call('get',TOKEN),$keep
if keep=='0' then
  n=n or string.format('%.0f',now)
  redis.call('set',TOKEN,n)
elseif not n then
  n=string.format('%.0f',now)
  redis.call('set',TOKEN,n,'px',keep+43200000)
end
