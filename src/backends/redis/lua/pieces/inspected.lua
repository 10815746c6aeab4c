-- Returns the reply of INSPECT for a mutex. `queue` is the list of fair
-- waiters.
--@takes queue
--@needs kind owner
--@defines two
local function two(list,hash)
  local r={}
  for _,w in ipairs(redis.call('lrange',list,0,999)) do
    r[#r+1]=w
    r[#r+1]=redis.call('hget',hash,w) or ''
  end
  return r
end
return {kind,owner,redis.call('pttl',KEYS.lock),redis.call('get',KEYS.token),
  redis.call('get',KEYS.info),$queue,two(KEYS.waiters,KEYS.crowd)}
