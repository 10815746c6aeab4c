-- Gives up a mutex of the string dialect, whether the owner holds it or waits
-- for it. If the mutex is free, the owner may have got the message that says
-- so, and the script notifies the next waiter instead. Returns 1 if the owner
-- held the mutex, else 0.
--@keys lock info waiters token crowd
--@args owner
--@include crowd_keys.lua
--@include crowd_delist.lua
local f=redis.call('get',KEYS.lock)
if f==ARGV.owner then redis.call('del',KEYS.lock,KEYS.info) end
if not f or f==ARGV.owner then
  --@include crowd_wake_s.lua
end
return f==ARGV.owner and 1 or 0
