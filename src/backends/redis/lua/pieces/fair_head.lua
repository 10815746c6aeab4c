-- The fair queue, in Redisson's layout. Q is the list of owners. D is a sorted
-- set, owner -> deadline in ms, by which Redisson removes dead waiters. S is a
-- hash of holdfast's waiters, owner -> "until seen ear hand_ms about": until
-- when the waiter counts as alive in ms (it polls again before that), when it
-- polled last, whether it was listening, and two arguments of its TAKE. A
-- waiter that is not in S is a Redisson client; D decides whether it is alive.
--
-- head() returns the first waiter that is alive, and its entry in S if it is a
-- holdfast client other than the caller. drop() removes the first waiter. `now`
-- may be nil: head() sets it when it needs it.
--@needs D Q S now
--@defines drop head
local function drop(w)
  redis.call('lpop',Q)
  redis.call('zrem',D,w)
  redis.call('hdel',S,w)
end
local function head()
  while true do
    local w=redis.call('lindex',Q,0)
    if not w or w==ARGV.owner then return w end
    if not now then
      local t=redis.call('time')
      now=t[1]*1000000+t[2]
    end
    local s=redis.call('hget',S,w)
    if s then
      local til,seen,ear,hand,about=string.match(s,
        '^(%d+) (%d+) (%d) (%d+) (.*)')
      til=tonumber(til)
      if til and til*1000>now then
        return w,til,seen,ear,hand,about
      end
    else
      local d=tonumber(redis.call('zscore',D,w))
      if d and d*1000>now then return w end
    end
    drop(w)
  end
end
