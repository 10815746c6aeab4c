-- readers() returns how many read holds are alive, and how long the hash must
-- live for them. A holdfast reader whose timeout key has expired is dead, and
-- is removed. Redisson's readers count as long as the hash lives, because
-- Redisson does not renew their timeout keys reliably.
--@needs BASE
--@defines readers
local function readers()
  local all,alive,longest=redis.call('hgetall',KEYS.lock),0,0
  for i=1,#all,2 do
    local f,ms=all[i],-2
    if f~='mode' then
      for k=1,tonumber(all[i+1]) or 0 do
        ms=math.max(ms,redis.call('pttl',BASE..':'..f..':rwlock_timeout:'..k))
      end
      if ms<0 and redis.call('hexists',KEYS.holds,f)==1 then
        redis.call('hdel',KEYS.lock,f)
        redis.call('hdel',KEYS.holds,f)
      else
        if ms<0 then ms=redis.call('pttl',KEYS.lock) end
        alive,longest=alive+1,math.max(longest,ms)
      end
    end
  end
  return alive,longest
end
