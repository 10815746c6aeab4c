-- Lowers the deadline of the waiter `w`, the `i`-th after the one that leaves.
-- If `w` arrived while a holdfast waiter was the first, its deadline does not
-- contain the wait of that waiter, whose own deadline was short. Such a `w` is
-- recognised by a deadline that would become too low, and keeps its deadline.
--@takes i
--@needs D now w
--@defines d
local d=tonumber(redis.call('zscore',D,w))
if d and d-$wait*($i)>now/1000+$RD_ALIVE_MS then
  redis.call('zincrby',D,-$wait,w)
end
