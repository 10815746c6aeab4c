-- Sets `now` to the server's time in microseconds, and refuses a request that
-- arrives after the time until which it is valid.
--@defines now t
local t=redis.call('time')
local now=t[1]*1000000+t[2]
if ARGV.valid_until_us~='0' and now>tonumber(ARGV.valid_until_us) then return {5,now} end
