-- Takes a mutex away from its holder. 1: it was held. 0: it was not. More:
-- the name belongs to another kind, and to which. {5, now}: too late.
--@keys lock info waiters token crowd queue timeout seen
--@args owner channel mark valid_until_us
--@include clock.lua
--@include mutex_keys.lua
local ty=redis.call('type',KEYS.lock).ok
if ty=='none' then return 0 end
if ty=='string' then return $other_string end
if ty~='hash' then return $RD_OTHER end
if redis.call('hexists',KEYS.lock,'mode')==1 then return $other_rw end
redis.call('del',KEYS.lock,KEYS.info)
--@include free_unfair.lua
return 1
