-- Adds the caller to the queue, or notes that it is still waiting. The caller's
-- first request may arrive after its second one, if the first was sent on a
-- connection that was lost; even then the caller is in the queue only once.
-- `passed` is set if only a waiter before the caller prevents the grant: the
-- time, in ms, for which that waiter still counts as alive. `ttl` is the time,
-- in ms, after which the lock ends by itself. `foreign` says whether programs
-- other than holdfast hold the lock. `size` is the size of a semaphore.
--@takes ttl foreign size
--@needs L P now passed
--@defines alive is_new joined ms near q
if ARGV.queue=='0' then return {4,now} end
local q,near,joined
if ARGV.queue=='1' or redis.call('hexists',P,ARGV.owner)==0 then
  q,joined=redis.call('rpush',L,ARGV.owner),true
  --@include near_new.lua
else
  q=redis.call('llen',L)
  --@include near.lua list=L
end
--@include alive_until.lua
local is_new=redis.call('hset',P,ARGV.owner,alive..ARGV.listening..' '..ARGV.fair..
  ' '..ARGV.want..' '..ARGV.hand_ms..' '..$size..' '..ARGV.about)
if joined and is_new==0 then redis.call('lrem',L,-1,ARGV.owner) end
redis.call('pexpire',L,$RD_KEEP_MS)
redis.call('pexpire',P,$RD_KEEP_MS)
return {3,now,passed and ($is_first and math.min(passed,1000) or
  passed) or $ttl,$foreign and 1 or 0,q,$nearness}
