-- Adds the owner to the unfair waiters, or notes that it is still waiting. The
-- two keys of waiters expire a minute after the last poll. If KEYS.info does
-- not exist, the holder is not a holdfast client.
--@needs C W now
--@defines alive ms near q
if ARGV.queue=='0' then return {4,now} end
local q,near
if ARGV.queue=='1' or redis.call('hexists',C,ARGV.owner)==0 then
  q=redis.call('rpush',W,ARGV.owner)
  --@include near_new.lua
else
  q=redis.call('llen',W)
  --@include near.lua list=W
end
--@include alive_until.lua
redis.call('hset',C,ARGV.owner,alive..ARGV.hand_ms..' '..ARGV.about)
if q==1 or ARGV.queue=='2' then
  redis.call('pexpire',W,$RD_KEEP_MS)
  redis.call('pexpire',C,$RD_KEEP_MS)
end
return {3,now,redis.call('pttl',KEYS.lock),
  1-redis.call('exists',KEYS.info),q,$nearness}
