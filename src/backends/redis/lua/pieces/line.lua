-- The queue of a lock other than a mutex, fair and unfair waiters together. L
-- is the list of owners in order of arrival. P is a hash, owner -> "until seen
-- ear fair want hand size about": until when the waiter counts as alive in ms
-- (it polls again before that), when it polled last, whether it was listening
-- (2: it was, and has been notified), whether it is fair, what it wants, the
-- lease with which the lock may be handed to it (0: it must try), the size of a
-- semaphore, and ARGV.about of its TAKE.
--
-- walk() visits the waiters in order and removes the dead ones; `dropped` says
-- whether there were any. If visit() returns 1, the waiter is removed. If it
-- returns 2, walk() ends.
--
-- tell() hands the lock to a waiter, or notifies the waiter to try. It returns
-- whether the waiter was notified, and what visit() must return. The lock is
-- handed over only if Redisson does not wait (`alone`), the waiter has polled
-- within the last seconds, and `on` is true. `is_exclusive` decides which token
-- the hold gets, and the piece `give` writes the hold. A notified fair waiter
-- keeps its place until it tries or is late. An unfair waiter loses its place,
-- and joins again if another client was faster.
--@takes letter on is_exclusive give
--@needs L P TOKEN alone now
--@defines dropped forget tell walk
local dropped
local function forget(w)
  redis.call('lrem',L,1,w)
  redis.call('hdel',P,w)
end
local function walk(visit)
  local i=0
  while true do
    local ws=redis.call('lrange',L,i,i+99)
    if #ws==0 then return end
    local ps=redis.call('hmget',P,unpack(ws))
    i=i+#ws
    for j,w in ipairs(ws) do
      local til,seen,ear,fair,want,hand,size,about=string.match(
        ps[j] or '','^(%d+) (%d+) (%d) (%d) (%w+) (%d+) (%d+) (.*)')
      local what=1
      if til and (w==ARGV.owner or til*1000>now) then
        what=visit(w,til,seen,ear,fair,want,hand,size,about)
      else
        dropped=true
      end
      if what==1 then
        forget(w)
        i=i-1
      elseif what==2 then
        return
      end
    end
  end
end
local function tell(w,til,seen,ear,fair,want,hand,size,about)
  local has='0'
  local to=$wake_channel
  local on=alone and hand~='0' and not ($not_seen_lately) and
    $on and redis.call('pubsub','numsub',to)[2]>0
  if on then
    --@include token_of.lua is_exclusive=$is_exclusive; keep=$keep_of_hand
    has=n
  end
  local heard=(tonumber(redis.pcall('publish',to,'$letter'..string.sub(w,38)..' '..has..
    ' '..seen..' '..KEYS.lock)) or -1)
  if on and heard>0 then
    local n,left=has,$left_of_hand
    --@include $give owner=w; ms=left; fair=fair; want=want; about=about
    return true,1
  end
  if fair=='0' then return heard>0,1 end
  if heard==0 and ear~='0' then return false,1 end
  local soon=math.floor(now/1000)+$RD_ALIVE_MS
  if tonumber(til)>soon then til=string.format('%.0f',soon) end
  if heard>0 and ear=='1' then ear='2' end
  redis.call('hset',P,w,til..' '..seen..' '..ear..' '..fair..' '..want..
    ' '..hand..' '..size..' '..about)
  return true
end
