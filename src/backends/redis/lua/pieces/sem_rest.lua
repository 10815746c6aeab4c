-- Takes back the caller's permits, whose number is `k`, and the permits that
-- have expired. Sets `freed` to whether there were any, and `v` to how many
-- permits are free then.
--@needs CH KIND MARK Z ears
--@defines freed k kind v
local v,k,freed,kind=redis.call('get',KEYS.lock),0
while redis.call('zrem',Z,ARGV.owner..':'..string.format('%.0f',k+1))==1 do
  k=k+1
end
if k>0 then redis.call('hdel',KEYS.holds,ARGV.owner) end
if v then
  freed=k>0
  if redis.call('exists',Z)==1 then
    --@include now.lua
    local ms=math.floor(now/1000)
    --@include sem_reclaim.lua
    freed=freed or back>0
  end
end
if freed then
  v=redis.call('incrby',KEYS.lock,k)
  kind=redis.call('get',KIND)
  --@include sem_announce.lua
end
