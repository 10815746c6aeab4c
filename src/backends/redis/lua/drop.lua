-- Releases an unfair mutex. Returns 1 if the owner held it, else 0.
--@keys lock info waiters token crowd queue timeout seen
--@args owner channel mark
--@include mutex_keys.lua
if redis.call('hdel',KEYS.lock,ARGV.owner)==0 then return 0 end
--@include free_unfair.lua
if not given then redis.call('del',KEYS.info) end
return 1
