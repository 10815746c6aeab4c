-- Used when the lock is free. The first unfair waiter that listens gets the
-- lock, or is notified to try. It is removed from W and C, and joins again if
-- another client is faster.
--
-- The lock is handed over only to a waiter that has polled within the last
-- seconds. A waiter that polls rarely may be suspended, so it is only notified.
-- If a waiter is late with its poll, the next waiter is notified too.
--
-- `lock` is the piece that writes the lock's key. If `shared` is set, the lock
-- is not handed over. The results are `told`, whether a waiter was notified,
-- and `given`, whether that waiter holds the lock now.
--@takes lock
--@needs C TOKEN W given shared told
while true do
  local w=redis.call('lpop',W)
  if not w then break end
  local s=redis.call('hget',C,w)
  if s then
    redis.call('hdel',C,w)
    local til,seen,hand,about=string.match(s,
      '^(%d+) (%d+) (%d+) (.*)')
    local to=$wake_channel
    local t=redis.call('time')
    local now=t[1]*1000000+t[2]
    if shared or hand=='0' or $not_seen_lately then
      told=(tonumber(redis.pcall('publish',to,'u'..string.sub(w,38)..' 0 0 '..KEYS.lock)) or -1)>0
        and til*1000>now
    else
      --@include token_mint.lua
      told=redis.call('pubsub','numsub',to)[2]>0 and (tonumber(redis.pcall('publish',to,'u'..
        string.sub(w,38)..string.format(' %.0f ',n)..seen..' '..KEYS.lock)) or -1)>0
      given=told
      if given then
        --@include give_to_w.lua kind="u"; lock=$lock
      end
    end
    if told then break end
  end
end
