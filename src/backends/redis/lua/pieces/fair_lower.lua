-- lower() follows Redisson's rule when the first waiter has left: it lowers the
-- deadline of each waiter after it by one wait.
--@needs D Q S now
--@defines lower
local function lower()
  if not ($redisson_queues) then return end
  --@include fair_stay.lua
  for i,w in ipairs(redis.call('lrange',Q,0,-1)) do
    --@include fair_lower_one.lua i=i
  end
end
