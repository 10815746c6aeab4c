-- Used when the caller's hold has been removed from the hash. Sets `freed` to
-- true if the lock is free, or to 'read' if readers may join now that a write
-- hold has ended. Sets `sooner` if the lock will end by itself earlier than
-- waiters expect.
--@needs CH KEY MARK alone ears mode readers
--@defines freed left sooner
local left=redis.call('pttl',KEY)
redis.call('del',KEY)
redis.call('hdel',KEYS.holds,ARGV.owner)
local freed,sooner=redis.call('hlen',KEYS.lock)==1
if not freed and mode=='write' then
  redis.call('hset',KEYS.lock,'mode','read')
  freed='read'
end
if freed~=true and left+1>=redis.call('pttl',KEYS.lock) then
  local alive,longest=readers()
  if alive==0 then
    freed=true
  elseif longest>0 then
    redis.call('pexpire',KEYS.lock,longest)
    sooner=left-longest>500
  end
end
if freed==true then redis.call('del',KEYS.lock,KEYS.holds) end
if freed then
  --@include rw_announce.lua was_write=mode=='write'
  alone=not ears
  mode=freed=='read' and freed
end
