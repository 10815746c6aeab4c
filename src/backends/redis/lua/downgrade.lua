-- Turns a write hold into a read hold. Returns 1 if the owner now has a read
-- hold, even if it already had one; 0 if the owner has no hold.
--@keys lock holds token line party
--@args owner channel mark base
--@include rw_keys.lua
local f=redis.call('hmget',KEYS.lock,ARGV.owner,ARGV.owner..':write')
if f[1] then return 1 end
if not f[2] then return 0 end
--@include rw_go_down.lua k=KEYS.lock; holds=KEYS.holds; o=ARGV.owner;
--@   base=BASE; ms=1
--@include rw_announce.lua was_write=true
if redis.call('exists',L)==0 then return 1 end
--@include now.lua
--@include rw_line.lua
--@include rw_call.lua
alone=not ears
call('read')
return 1
