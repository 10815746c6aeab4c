-- Removes the owner from the fair queue. Lowers the deadlines of the waiters
-- after it, as Redisson does.
--@needs D Q S now
--@defines ours ws
--@include fair_tidy.lua
if redis.call('zrem',D,ARGV.owner)==1 then
  if $redisson_queues then
    --@include fair_stay.lua
    if not now then
      local t=redis.call('time')
      now=t[1]*1000000+t[2]
    end
    local behind=false
    for i,w in ipairs(redis.call('lrange',Q,0,-1)) do
      if behind then
        --@include fair_lower_one.lua i=i-1
      end
      behind=behind or w==ARGV.owner
    end
  end
  redis.call('lrem',Q,1,ARGV.owner)
end
redis.call('hdel',S,ARGV.owner)
