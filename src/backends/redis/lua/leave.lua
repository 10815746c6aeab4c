-- Gives up an unfair mutex, whether the owner holds it or waits for it. If the
-- mutex is free, the owner may have got the message that says so, and the
-- script notifies the next waiter instead. Returns 1 if the owner held the
-- mutex, else 0.
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
