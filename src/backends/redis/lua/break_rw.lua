-- Breaks the holds of a read-write lock. If ARGV.token is not 0, only holds
-- with that token are broken, and if ARGV.owner is not '', only holds of that
-- owner.
--
-- Returns 1 if a hold was broken; 0 if the lock was not held; the token of one
-- holder as a string ('' if unknown) if no holder matches; or {5, now} if the
-- request was too late.
--@keys lock holds token line party permits kind
--@args owner channel mark base valid_until_us token
--@include rw_keys.lua
--@include clock.lua
--@include rw_line.lua
--@include rw_readers.lua
--@include rw_call.lua
local mode=redis.call('hget',KEYS.lock,'mode')
if not mode then return 0 end
readers()
local all,hit,other=redis.call('hgetall',KEYS.lock),{}
for i=1,#all,2 do
  local f=all[i]
  if f~='mode' then
    local w=string.match(f,'^(.*):write$') or f
    local n,about=string.match(redis.call('hget',KEYS.holds,w) or '',
      '^[^\n]*\n[^\n]*\n(%d+)\n?[^\n]*\n?(%d*)')
    if (ARGV.token=='0' or ARGV.token==n) and
      (ARGV.owner=='' or ARGV.owner==w) then
      hit[#hit+1]={f,w}
      --@include gone.lua
      for k=1,tonumber(all[i+1]) or 0 do
        redis.call('del',BASE..':'..f..':rwlock_timeout:'..k)
      end
    else
      other=n or other or ''
    end
  end
end
if other and #hit==0 then return other end
for _,h in ipairs(hit) do
  redis.call('hdel',KEYS.lock,h[1])
  redis.call('hdel',KEYS.holds,h[2])
end
if not other then
  redis.call('del',KEYS.lock,KEYS.holds)
else
  local _,longest=readers()
  if longest>0 then redis.call('pexpire',KEYS.lock,longest) end
  if mode=='write' then redis.call('hset',KEYS.lock,'mode','read') end
end
--@include rw_announce.lua was_write=true
call(other and mode=='write' and 'read')
return #hit>0 and 1 or 0
