-- Returns {'r', token, 0, 0, holders, waiters} of a read-write lock, with '-'
-- instead of 'r' if the lock has neither holders nor waiters. A holder is
-- {owner, r or w, ms left, note}.
--@keys lock holds token line party permits kind
--@args owner channel mark base
--@include rw_keys.lua
local holders={}
--@include inspect_waiters.lua
local all=redis.call('hgetall',KEYS.lock)
for i=1,#all,2 do
  local f,ms=all[i],-2
  if f~='mode' then
    local o=string.match(f,'^(.*):write$')
    if o then
      ms=redis.call('pttl',KEYS.lock)
    else
      for k=1,tonumber(all[i+1]) or 0 do
        ms=math.max(ms,redis.call('pttl',BASE..':'..f..':rwlock_timeout:'..k))
      end
    end
    -- A dead holdfast reader may still be in the hash (rw_readers.lua).
    local note=redis.call('hget',KEYS.holds,o or f)
    if o or ms>=0 or not note then
      holders[#holders+1]={o or f,o and 'w' or 'r',ms,note or ''}
    end
  end
end
return {'r',redis.call('get',KEYS.token) or 0,0,0,holders,waiters}
