-- Takes a semaphore away from all holders, or deletes a latch. 1: it was
-- held. 0: it was not. $RD_OTHER: it is neither. {5, now}: too late.
--@keys lock holds token line party permits kind
--@args owner channel mark latch_channel valid_until_us
--@include sem_keys.lua
--@include clock.lua
local kind,ms=redis.call('get',KIND),math.floor(now/1000)
--@include sem_line.lua
--@include sem_call.lua
if redis.call('exists',KEYS.lock)==0 then return 0 end
kind=kind or redis.call('pttl',KEYS.lock)>$latch_ttl_ms and 'l'
if string.sub(kind or '',1,1)=='l' and redis.call('exists',Z)==0 then
  redis.call('del',KEYS.lock,KIND)
  redis.call('publish',ARGV.latch_channel,'0')
  return 1
end
if not kind and redis.call('exists',Z)==0 then return $RD_OTHER end
--@include sem_reclaim.lua
local out=redis.call('zcard',Z)
local v=redis.call('incrby',KEYS.lock,out)
redis.call('del',Z,KEYS.holds)
--@include sem_announce.lua
call(v)
--@include sem_end.lua
return out>0 and 1 or 0
