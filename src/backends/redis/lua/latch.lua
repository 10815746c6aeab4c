-- Sets a latch (s), counts it down (d), or reads it (g). Returns {0, now,
-- count}; {4, now, count} if a latch to be set is already set; {5, now} if the
-- request was too late; or {6, now} if the name is not a latch. The name of the
-- key `did` contains the number of the request. This key keeps the result for a
-- while, so that a request that is sent twice counts once.
--@keys lock kind permits did
--@args verb count valid_until_us did_ttl_ms channel
--@include clock.lua
local did=redis.call('get',KEYS.did)
if did then return {0,now,tonumber(did)} end
--@include latch_count.lua
if ARGV.verb=='g' then return {0,now,v} end
if ARGV.verb=='s' then
  if v>0 then return {4,now,v} end
  redis.call('set',KEYS.kind,'l'..string.format('%.0f',now),'px',86400000)
  redis.call('set',KEYS.lock,ARGV.count,'px',6311520000000)
  redis.call('publish',ARGV.channel,'1')
  v=tonumber(ARGV.count)
elseif v>1 then
  mark()
  v=redis.call('decr',KEYS.lock)
elseif v==1 then
  redis.call('del',KEYS.lock,KEYS.kind)
  redis.call('publish',ARGV.channel,'0')
  v=0
end
redis.call('set',KEYS.did,v,'px',ARGV.did_ttl_ms)
return {0,now,v}
