-- Removes dead waiters from S. Redisson removes a dead holdfast waiter from Q
-- and D, but not from S, where the entry would hide a Redisson waiter
-- ($redisson_queues).
--@needs D Q S
--@defines ours ws
local ws,ours=redis.call('lrange',Q,0,99),true
for _,s in ipairs(#ws>0 and redis.call('hmget',S,unpack(ws)) or ws) do
  ours=ours and s
end
for _,w in ipairs(ours and {} or redis.call('hkeys',S)) do
  if not redis.call('zscore',D,w) then redis.call('hdel',S,w) end
end
