-- Takes a mutex away from its holder. 1: it was held. 0: it was not. More:
-- the name belongs to another kind, and to which. {5, now}: too late. With a
-- token (0: any) or an owner ('': any) only if the holder has them; a text: it
-- has not, and the token of the holder, '' if it has none. Without an owner the
-- holder has to be one of ours: others do not raise the counter of tokens.
--@keys lock info waiters token crowd queue timeout seen
--@args owner channel mark valid_until_us token
--@include clock.lua
--@include mutex_keys.lua
local ty=redis.call('type',KEYS.lock).ok
if ty=='none' then return 0 end
if ty=='string' then return $other_string end
if ty~='hash' then return $RD_OTHER end
if redis.call('hexists',KEYS.lock,'mode')==1 then return $other_rw end
--@include break_only.lua has=redis.call('hexists',KEYS.lock,o)==1
--@include break_tell.lua
redis.call('del',KEYS.lock,KEYS.info)
--@include free_unfair.lua
return 1
