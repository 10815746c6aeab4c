-- Used if the hash exists. If it is a read-write lock, the reply is a
-- mismatch. If the caller holds the lock, an earlier reply was lost, and the
-- reply is a grant. Otherwise the script continues.
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
