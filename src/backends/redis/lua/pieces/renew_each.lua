-- Extends each lock for which the expression `is_ours` is true.
--@takes is_ours
--@defines now r t
--@include clock.lua
local r={}
for i=1,#KEYS,2 do
  local owner,ms=ARGV.client..ARGV[i+2],ARGV[i+3]
  if $is_ours then
    if redis.call('pttl',KEYS[i])<tonumber(ms) then
      redis.call('pexpire',KEYS[i],ms)
      redis.call('pexpire',KEYS[i+1],ms) end
    r[#r+1]='1'
  else
    r[#r+1]='0'
  end
end
return table.concat(r)
