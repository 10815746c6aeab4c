-- Lowers the deadline of the waiter `w`, the `i`-th behind the one that
-- leaves. A waiter that arrived while a holdfast waiter was the first has not
-- added that wait to its deadline, because that deadline was near; it is
-- recognised by a deadline that would be too low, and keeps it.
--@takes i
--@needs D now w
--@defines d
local d=tonumber(redis.call('zscore',D,w))
if d and d-$wait*($i)>now/1000+$RD_ALIVE_MS then
  redis.call('zincrby',D,-$wait,w)
end
