-- Redisson's waiters all listen to CH. Holdfast's waiters listen to CH too, for
-- Redisson's messages, and subscribe to MARK in the same command. If CH has
-- more listeners than MARK, the others are Redisson's; then the lock is not
-- handed over, and all waiters may try. "00" means 0 to Redisson, and says to
-- holdfast's waiters that one of them has already been notified. If the server
-- forbids PUBSUB, the script assumes that Redisson waits.
--@needs C CH MARK TOKEN W given
--@defines shared told
local told,shared
if redis.call('exists',W)==1 then
  local s=redis.pcall('pubsub','numsub',CH,MARK)
  shared=s.err or s[2]>s[4]
  --@include crowd_next.lua lock=hold_hash.lua
end
if shared or not told then
  redis.call('publish',CH,told and '00' or '0')
end
