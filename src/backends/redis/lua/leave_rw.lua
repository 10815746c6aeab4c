-- Gives up a read-write lock, whether the owner holds it or waits for it. If
-- the lock is free, the owner may have got the message that says so, and the
-- script notifies the next waiter instead. Returns 1 if the owner held the
-- lock, else 0.
--@keys lock holds token line party
--@args owner channel mark base
--@include rw_keys.lua
--@include now.lua
--@include rw_line.lua
--@include rw_readers.lua
--@include rw_call.lua
forget(ARGV.owner)
local mode=redis.call('hget',KEYS.lock,'mode')
local ours=mode and redis.call('hdel',KEYS.lock,ARGV.owner,ARGV.owner..':write') or 0
if ours>0 then
  --@include rw_rest.lua
end
if redis.call('exists',L)==1 then call(mode) end
return ours
