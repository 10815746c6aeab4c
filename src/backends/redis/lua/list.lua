-- Returns {next cursor, keys ...}: the keys that are locks. A string is listed
-- only if holdfast or an RPermitExpirableSemaphore uses it.
--@args cursor pattern count
local s=redis.call('scan',ARGV.cursor,'match',ARGV.pattern,'count',ARGV.count)
local r={s[1]}
for _,k in ipairs(s[2]) do
  local ty,is=redis.call('type',k).ok
  if ty=='hash' then
    local f=redis.call('hlen',k)==1 and redis.call('hkeys',k)[1]
    is=f and string.find(f,'^%x+%-%x+%-%x+%-%x+%-%x+:%d+$') or
      redis.call('hexists',k,'mode')==1
  elseif ty=='string' then
    local own=string.find(k,'{',1,true)
    is=redis.call('exists','holdfast:kind:'..(own and ':'..k or
      '{'..k..'}'),own and k..':timeout' or '{'..k..'}:timeout')>0 or
      redis.call('pttl',k)>$latch_ttl_ms
  end
  if is then r[#r+1]=k end
end
return r
