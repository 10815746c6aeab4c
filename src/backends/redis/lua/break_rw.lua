-- Takes a read-write lock away from all holders. 1: it was held. 0: it was
-- not. {5, now}: too late.
--@keys lock holds token line party permits kind
--@args owner channel mark base valid_until_us
--@include rw_keys.lua
--@include clock.lua
--@include rw_line.lua
--@include rw_call.lua
if redis.call('hexists',KEYS.lock,'mode')==0 then return 0 end
local all=redis.call('hgetall',KEYS.lock)
for i=1,#all,2 do
  for k=1,tonumber(all[i+1]) or 0 do
    redis.call('del',BASE..':'..all[i]..':rwlock_timeout:'..k)
  end
end
redis.call('del',KEYS.lock,KEYS.holds)
--@include rw_announce.lua was_write=true
call(false)
return 1
