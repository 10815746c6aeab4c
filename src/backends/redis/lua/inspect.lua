-- Returns {kind, owner, pttl, token, info, queue, crowd} of a mutex. The kind
-- is 0 if the mutex is free, 1 if it is held, $RD_OTHER or more if the name
-- belongs to another kind (scripts.h). `queue` and `crowd` list two strings for
-- each waiter: the owner, and its note in KEYS.seen or KEYS.crowd. Each lists
-- at most 1000 waiters.
--@keys lock info waiters token crowd queue seen
local kind,owner,ty=0,false,redis.call('type',KEYS.lock).ok
if ty=='hash' then
  if redis.call('hexists',KEYS.lock,'mode')==1 then
    kind=$other_rw
  else
    local f=redis.call('hkeys',KEYS.lock)
    owner=f[1]
    kind=#f==1 and 1 or $RD_OTHER
  end
elseif ty~='none' then
  kind=ty=='string' and $other_string or $RD_OTHER
end
--@include inspected.lua queue=two(KEYS.queue,KEYS.seen)
