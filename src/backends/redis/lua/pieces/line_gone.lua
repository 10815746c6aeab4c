-- gone() returns whether a waiter before the caller is dead: no connection
-- listens to its channel.
--@defines gone
local function gone(w,ear,about)
  local s=ear~='0' and redis.pcall('pubsub','numsub',$wake_channel)
  return s and not s.err and s[2]==0
end
