-- Takes back the permits that have expired at `ms`. Sets `back` to their
-- number.
--@needs Z ms
--@defines back due
local due=redis.call('zrangebyscore',Z,'-inf',string.format('%.0f',ms))
local back=#due
for _,id in ipairs(due) do
  redis.call('zrem',Z,id)
  redis.call('hdel',KEYS.holds,(string.gsub(id,':%d+$','')))
end
if back>0 then redis.call('incrby',KEYS.lock,back) end
