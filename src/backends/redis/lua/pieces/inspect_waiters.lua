-- Sets `waiters` to two strings for each waiter: the owner, and its note
-- (line.lua). If the lock does not exist and has no waiters, the script ends
-- here.
--@defines waiters
local waiters={}
for _,w in ipairs(redis.call('lrange',KEYS.line,0,999)) do
  waiters[#waiters+1]=w
  waiters[#waiters+1]=redis.call('hget',KEYS.party,w) or ''
end
-- The name is not in use as a lock.
if redis.call('exists',KEYS.lock)==0 and #waiters==0 then
  return {'-',redis.call('get',KEYS.token) or 0,0,0,{},{}}
end
