-- Releases a mutex of the string dialect. Returns 1 if the owner held it, else
-- 0.
--@keys lock info waiters token crowd
--@args owner
--@include crowd_keys.lua
if redis.call('get',KEYS.lock)~=ARGV.owner then return 0 end
redis.call('del',KEYS.lock,KEYS.info)
--@include crowd_wake_s.lua
return 1
