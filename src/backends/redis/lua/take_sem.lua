-- Acquires `want` permits of a semaphore of `size`. README.md describes the
-- arguments and the reply.
--@keys lock holds token line party permits kind
--@args owner lease_ms valid_until_us token_ttl_ms about queue fair listening want size hand_ms
--@include clock.lua
local TOKEN,L,P,Z,KIND,alone=KEYS.token,KEYS.line,KEYS.party,KEYS.permits,KEYS.kind
local ms,k,size=math.floor(now/1000),tonumber(ARGV.want),tonumber(ARGV.size)
--@include read_key.lua command='get',KEYS.lock; leave=line_leave.lua
local v,kind,came=has,redis.call('get',KIND),0
local made,met,out='s '..ARGV.size,'r '..ARGV.size,0
has=nil
if v then
  --@include sem_reclaim.lua
  came=back
  v=(tonumber(v) or -1e9)+back
  out=redis.call('zcard',Z)
  local known=kind==made or kind==met and v+out<=size
  local is=string.sub(kind or '',1,1)
  if not known and (v+out~=size or is=='l' and out==0 or is=='s' or
    not kind and redis.call('pttl',KEYS.lock)>$latch_ttl_ms) then
    --@include line_mismatch.lua
  end
  if not known then kind=false end
  has=redis.call('zscore',Z,ARGV.owner..':1')
else
  -- ZSCORE makes the script fail here if the key has another type.
  redis.call('zscore',Z,'')
  redis.call('del',Z,KEYS.holds,KIND)
  kind=false
end
local due=string.format('%.0f',ms+ARGV.lease_ms)
if has then
  for i=1,k do
    redis.call('zadd',Z,'xx',due,ARGV.owner..':'..string.format('%.0f',i))
  end
  --@include sem_keep.lua lock=KEYS.lock; holds=KEYS.holds;
  --@   lease=ARGV.lease_ms; is_new=false
  --@include token_shared.lua keep=ARGV.token_ttl_ms
  return {2,now,n}
end
local free=v or size
if free>=k and came==0 and $no_line then
  --@include sem_grant.lua
  return {2,now,n}
end
--@include sem_line.lua
--@include line_gone.lua
--@include sem_call.lua
local fits,passed,sum,i=free>=k,nil,0,0
if fits and ARGV.fair=='1' then
  walk(function(w,til,seen,ear,fair,want,hand,size,about)
    if w==ARGV.owner then return 2 end
    i=i+1
    if i<=8 and gone(w,ear,about) then
      dropped=true
      return 1
    end
    sum=sum+want
    if sum+k>free then
      fits,passed=false,til-ms
      return 2
    end
  end)
end
if fits then
  --@include line_come.lua
  --@include sem_grant.lua
  if came>0 or by_chance then call(free-k) end
  return {2,now,n}
end
if came>0 or passed and ARGV.queue=='2' then call(free) end
local first=redis.call('zrange',Z,0,0,'withscores')[2]
out=redis.call('zcard',Z)
--@include line_stand.lua ttl=first and math.max(first-ms,0) or -1;
--@   foreign=out>redis.call('hlen',KEYS.holds); size=ARGV.size
