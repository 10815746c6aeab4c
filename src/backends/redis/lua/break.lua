-- Breaks a mutex. Returns 1 if it was held; 0 if it was not; $RD_OTHER or more
-- if the name belongs to another kind (scripts.h); {5, now} if the request
-- came too late. If a token (0: any) or an owner ('': any) is given, only the
-- hold of that token and owner is broken. If the hold is a different one, the
-- script returns its token as a string, '' if it has none. A token without an
-- owner matches only holdfast clients, because other clients do not raise the
-- counter of tokens.
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
