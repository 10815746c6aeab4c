-- Returns {letter, token, size, count, holders, waiters} of a string. The
-- letter is s for a semaphore, l for a latch, '' for a string that is neither,
-- or '-' if the name is not in use, or is a semaphore that holdfast created and
-- that has neither holders nor waiters. The count is the number of free
-- permits, or the count of the latch. A holder is {owner, permits, ms left,
-- note}. The script writes nothing.
--@keys lock holds token line party permits kind
--@args owner channel mark latch_channel
--@include sem_keys.lua
local kind,holders=redis.call('get',KIND),{}
kind=kind or redis.call('pttl',KEYS.lock)>$latch_ttl_ms and 'l' or ''
local v,of=tonumber(redis.call('get',KEYS.lock)) or 0,{}
--@include now.lua
local ms=math.floor(now/1000)
--@include inspect_waiters.lua
-- Counts the permits as if the expired ones had been taken back.
local at=string.format('%.0f',ms)
local due=#redis.call('zrangebyscore',Z,'-inf',at)
local out=redis.call('zcard',Z)-due
v=v+due
local size=v+out
if string.sub(kind,1,1)=='l' and out+due==0 then
  return {'l',0,0,v,holders,waiters}
end
if kind=='' and out+due==0 then return {'',0,0,0,{},{}} end
if out==0 and #waiters==0 and kind=='s '..string.format('%.0f',v) then
  return {'-',redis.call('get',KEYS.token) or 0,0,0,{},{}}
end
local all=redis.call('zrangebyscore',Z,'('..at,'+inf','withscores',
  'limit',0,10000)
for i=1,#all,2 do
  local id=all[i]
  local o=$permit_owner
  local h=o and of[o]
  if h then
    h[2]=h[2]+1
  else
    h={o or $permit_hex,1,
      all[i+1]-ms>3e12 and -1 or all[i+1]-ms,
      o and redis.call('hget',KEYS.holds,o) or ''}
    holders[#holders+1]=h
    if o then of[o]=h end
  end
end
for _,h in ipairs(holders) do h[2]=string.format('%.0f',h[2]) end
return {'s',redis.call('get',KEYS.token) or 0,
  string.match(kind,'^%a (%d+)') or size,v,holders,waiters}
