-- Releases a read or write hold. Returns 1 if the owner had one, else 0.
--@keys lock holds token line party
--@args owner channel mark base
--@include rw_keys.lua
local mode=redis.call('hget',KEYS.lock,'mode')
if not mode or redis.call('hdel',KEYS.lock,ARGV.owner,ARGV.owner..':write')==0 then
  return 0
end
if redis.call('hlen',KEYS.lock)==1 and redis.call('exists',L)==0 then
  redis.call('del',KEYS.lock,KEYS.holds,KEY)
  --@include rw_announce.lua was_write=mode=='write'
  return 1
end
--@include now.lua
--@include rw_line.lua
--@include rw_readers.lua
--@include rw_call.lua
--@include rw_rest.lua
if freed and redis.call('exists',L)==1 then call(mode) end
alone=false
if sooner then call(false) end
return 1
