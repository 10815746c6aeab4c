-- Extends holds of read-write locks. KEYS are lock and holds of each lock. ARGV
-- are "uuid:", the time until which the request is valid, then hold_id,
-- lease_ms, base and channel of each hold. The channel is empty for a write
-- hold. A read hold that is still a write hold here, because a downgrade was
-- lost, is downgraded now. The reply is the same as that of renew.lua.
--@args client valid_until_us
--@include clock.lua
local r={}
for i=1,#KEYS,2 do
  local a=2*i+1
  local owner,ms,base=ARGV.client..ARGV[a],ARGV[a+1],ARGV[a+2]
  local f=redis.pcall('hmget',KEYS[i],owner,owner..':write')
  if f.err then f={} end
  if f[2] and ARGV[a+3]~='' then
    --@include rw_go_down.lua k=KEYS[i]; holds=KEYS[i+1]; o=owner; base=base;
    --@   ms=ms
    redis.call('publish',ARGV[a+3],'1')
  elseif f[1] then
    local key=base..':'..owner..':rwlock_timeout:1'
    if redis.call('pttl',key)<tonumber(ms) and
      redis.call('pexpire',key,ms)==0 then
      redis.call('set',key,1,'px',ms)
    end
  end
  if f[1] or f[2] then
    for k=i,i+1 do
      if redis.call('pttl',KEYS[k])<tonumber(ms) then
        redis.call('pexpire',KEYS[k],ms)
      end
    end
    r[#r+1]='1'
  else
    r[#r+1]='0'
  end
end
return table.concat(r)
