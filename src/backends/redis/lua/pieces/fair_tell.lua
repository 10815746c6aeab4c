-- tell() notifies the first waiter to try. If the waiter is a holdfast client,
-- tell() returns the time until which the waiter counts as alive. That time is
-- soon, even if the waiter polls rarely, because the waiter must try soon. A
-- Redisson waiter that does not listen has just arrived and will try again, or
-- is dead; its deadline is brought forward.
--
-- PUBLISH fails (-1) if the server forbids that channel: we may have no right
-- to the channel of a waiter with another prefix. Such a waiter may be alive,
-- so it keeps its place, and polls by itself.
--@needs CH D S drop head now
--@defines tell
local function tell()
  while true do
    local w,til,seen,ear,hand,about=head()
    if not w or w==ARGV.owner then return end
    if not til then
      local soon=math.floor(now/1000)+$RD_ALIVE_MS
      if redis.call('publish',CH..':'..w,'0')==0 and
        tonumber(redis.call('zscore',D,w))>soon then
        redis.call('zadd',D,soon,w)
      end
      return
    end
    if (tonumber(redis.pcall('publish',$wake_channel,'f'..string.sub(w,38)..' 0 0 '..KEYS.lock)) or -1)
      ~=0 or ear=='0' then
      local soon=math.floor(now/1000)+$RD_ALIVE_MS
      if til>soon then
        til=soon
        redis.call('hset',S,w,string.format('%.0f ',til)..seen..' '..
          ear..' '..hand..' '..about)
      end
      return til
    end
    drop(w)
  end
end
