-- Used if the hash exists. If it is a read-write lock, the script replies with
-- a mismatch. If the caller already holds the mutex, an earlier reply was lost,
-- and the script grants the mutex again. Otherwise the script continues.
--@takes kind leave
--@needs TOKEN now
--@defines f
local f=redis.call('hmget',KEYS.lock,ARGV.owner,'mode')
if f[2] then
  if ARGV.queue=='2' then
    --@include $leave
  end
  return {6,now}
end
if f[1] then
  --@include again.lua info=KEYS.info
  --@include grant.lua kind=$kind; lock=hold_hash.lua
end
