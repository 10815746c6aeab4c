-- Extends holds of semaphores. KEYS lock holds permits kind, for each; ARGV
-- "uuid:", then hold_id lease_ms for each. The answer has a character for
-- each lock, 1: the owner holds it, 0: it does not.
--@args client
local r,t,wrote={},redis.call('time')
local ms=t[1]*1000+math.floor(t[2]/1000)
for i=1,#KEYS,4 do
  local Z,KIND,a=KEYS[i+2],KEYS[i+3],(i+1)/2
  local owner,lease=ARGV.client..ARGV[a+1]..':',ARGV[a+2]
  local kind=redis.call('get',KIND)
  local has=redis.pcall('zscore',Z,owner..'1')
  if type(has)=='string' and redis.call('exists',KEYS[i])==1 then
    if tonumber(has)<ms+lease then
      -- A server without memory refuses ZADD as the first write.
      wrote=wrote or redis.call('zrem',Z,'')
      local k=1
      repeat
        redis.call('zadd',Z,'xx',string.format('%.0f',ms+lease),
          owner..string.format('%.0f',k))
        k=k+1
      until not redis.call('zscore',Z,owner..string.format('%.0f',k))
      --@include sem_keep.lua lock=KEYS[i]; holds=KEYS[i+1]; lease=lease;
      --@   is_new=false
    end
    r[#r+1]='1'
  else
    r[#r+1]='0'
  end
end
return table.concat(r)
