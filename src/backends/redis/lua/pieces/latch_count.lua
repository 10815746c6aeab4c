-- Sets `v` to the count of the latch. If the string is not a latch, the script
-- replies with a mismatch. mark() writes or extends the key that says that the
-- string is a latch.
--@needs now
--@defines kind mark v
local v,kind=redis.call('get',KEYS.lock),redis.call('get',KEYS.kind)
if v and (not tonumber(v) or kind and string.sub(kind,1,1)~='l' or
  redis.call('exists',KEYS.permits)==1) then
  return {6,now}
end
v=math.max(tonumber(v) or 0,0)
local function mark()
  if not kind or redis.call('pttl',KEYS.kind)<43200000 then
    redis.call('set',KEYS.kind,kind or 'l','px',86400000)
  end
end
