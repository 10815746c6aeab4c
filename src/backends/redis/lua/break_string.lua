-- Deletes a latch, or breaks the holds of a semaphore. If ARGV.token is not 0,
-- only holds with that token are broken, and if ARGV.owner is not '', only
-- holds of that owner. In both cases a latch stays, because it has no holds.
--
-- Returns 1 if a hold was broken or the latch was deleted; 0 if the semaphore
-- was not held, or the latch was not set or stays; the token of one holder as a
-- string ('' if unknown) if no holder matches; $RD_OTHER if the string is
-- neither a semaphore nor a latch; or {5, now} if the request was too late.
--@keys lock holds token line party permits kind
--@args owner channel mark latch_channel valid_until_us token
--@include sem_keys.lua
--@include clock.lua
local kind,ms=redis.call('get',KIND),math.floor(now/1000)
--@include sem_line.lua
--@include sem_call.lua
if redis.call('exists',KEYS.lock)==0 then return 0 end
kind=kind or redis.call('pttl',KEYS.lock)>$latch_ttl_ms and 'l'
if string.sub(kind or '',1,1)=='l' and redis.call('exists',Z)==0 then
  if ARGV.token~='0' or ARGV.owner~='' then return 0 end
  redis.call('del',KEYS.lock,KIND)
  redis.call('publish',ARGV.latch_channel,'0')
  return 1
end
if not kind and redis.call('exists',Z)==0 then return $RD_OTHER end
--@include sem_reclaim.lua
local hit,other={}
for _,id in ipairs(redis.call('zrange',Z,0,-1)) do
  local w=$permit_owner or $permit_hex
  local n,about=string.match(redis.call('hget',KEYS.holds,w) or '',
    '^[^\n]*\n[^\n]*\n(%d+)\n?[^\n]*\n?(%d*)')
  if (ARGV.token=='0' or ARGV.token==n) and
    (ARGV.owner=='' or ARGV.owner==w) then
    redis.call('zrem',Z,id)
    hit[#hit+1]=w
    --@include gone.lua
  else
    other=n or other or ''
  end
end
for _,o in ipairs(hit) do redis.call('hdel',KEYS.holds,o) end
local v=redis.call('incrby',KEYS.lock,#hit)
--@include sem_announce.lua
call(v)
--@include sem_end.lua
return #hit>0 and 1 or other or 0
