-- Makes the keys outlive the last permit by a day, which is long enough for a
-- permit that Redisson has taken in the meantime. `holds` is deleted with the
-- last hold, so its expiry is missing when a new hold has created it again. Z
-- may be new although `holds` is not, if Redisson has taken permits back
-- (`is_new`).
--@takes lock holds lease is_new
--@needs KIND Z kind ms
if redis.call('pttl',$holds)<$lease+43200000 or $is_new then
  local last=redis.call('zrange',Z,-1,-1,'withscores')[2] or ms
  last=string.format('%.0f',math.min(math.max(last-ms,0),3e12)+86400000)
  redis.call('pexpire',KIND,last)
  redis.call('pexpire',$holds,last)
  if string.sub(kind or 'r',1,1)=='s' then
    redis.call('pexpire',$lock,last)
    redis.call('pexpire',Z,last)
  end
end
