-- Extends holds of semaphores. KEYS are lock, holds, permits and kind of each
-- semaphore. The arguments and the reply are the same as those of renew.lua.
--@args client valid_until_us
--@include clock.lua
local r,ms,wrote={},math.floor(now/1000)
for i=1,#KEYS,4 do
  local Z,KIND,a=KEYS[i+2],KEYS[i+3],(i+1)/2
  local owner,lease=ARGV.client..ARGV[a+2]..':',ARGV[a+3]
  local kind=redis.call('get',KIND)
  local has=redis.pcall('zscore',Z,owner..'1')
  if type(has)=='string' and tonumber(has)>ms and
      redis.call('exists',KEYS[i])==1 then
    if tonumber(has)<ms+lease then
      -- A server that is out of memory refuses a ZADD only as the first write
      -- of a script, so begin with a ZREM, which it does not refuse.
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
