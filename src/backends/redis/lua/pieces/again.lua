-- Used if the owner already holds the lock, because an earlier reply was lost.
-- Extends the lease, and returns the token of the hold. If the counter of
-- tokens has expired, the script continues after this piece. `info` is the key
-- with the holder's information.
--@takes info
--@needs TOKEN now
--@defines has
if redis.call('pttl',KEYS.lock)<tonumber(ARGV.lease_ms) then
  redis.call('pexpire',KEYS.lock,ARGV.lease_ms)
  redis.call('pexpire',$info,ARGV.lease_ms)
end
local has=tonumber(redis.call('get',TOKEN))
if has then return {2,now,has} end
