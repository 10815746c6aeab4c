-- Returns the same as inspect.lua, for the string dialect.
--@keys lock info waiters token crowd queue seen
local kind,owner,ty=0,false,redis.call('type',KEYS.lock).ok
if ty=='string' then
  kind,owner=1,redis.call('get',KEYS.lock)
elseif ty~='none' then
  kind=$RD_OTHER
end
--@include inspected.lua queue={}
