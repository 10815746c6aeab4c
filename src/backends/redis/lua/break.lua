-- Breaks a mutex. If ARGV.token is not 0 or ARGV.owner is not '', only the hold
-- with that token and owner is broken. A token without an owner matches only
-- holds of holdfast clients: Redisson's plain locks do not raise the counter of
-- tokens, so the counter may belong to an earlier hold.
--
-- Returns 1 if the mutex was held and is broken now; 0 if it was not held; the
-- token of the hold as a string ('' if unknown) if it is a different hold;
-- $RD_OTHER or more if the name belongs to another kind (scripts.h); or {5,
-- now} if the request was too late.
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
