-- Breaks a mutex of the string dialect. The arguments and the reply are the
-- same as those of break.lua.
--@keys lock info waiters token crowd queue timeout seen
--@args owner channel mark valid_until_us token
--@include clock.lua
--@include crowd_keys.lua
if not redis.call('get',KEYS.lock) then return 0 end
--@include break_only.lua has=redis.call('get',KEYS.lock)==o
--@include break_tell.lua
redis.call('del',KEYS.lock,KEYS.info)
--@include crowd_wake_s.lua
return 1
