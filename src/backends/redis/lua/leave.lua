-- Gives up an unfair mutex, for which the owner may be waiting, or which it may
-- hold. If the lock is free, the owner may have been notified of that, so the
-- script notifies the next waiter. Returns 1 if the owner held the lock, else
-- 0.
--@keys lock info waiters token crowd queue timeout seen
--@args owner channel mark
--@include mutex_keys.lua
--@include crowd_delist.lua
local ours=redis.call('hdel',KEYS.lock,ARGV.owner)
if ours==1 then redis.call('del',KEYS.info) end
if redis.call('exists',KEYS.lock)==0 then
  --@include free_unfair.lua
end
return ours
