-- Lowers the deadline of the waiter `w`, the `i`-th after the one that leaves.
-- If `w` arrived while a holdfast waiter was the first, the deadline of `w`
-- does not include a full wait for that waiter, whose own deadline was short.
-- The script recognises such a `w` by a deadline that would become too low, and
-- does not lower it.
--@takes i
--@needs D now w
--@defines d
local d=tonumber(redis.call('zscore',D,w))
if d and d-$wait*($i)>now/1000+$RD_ALIVE_MS then
  redis.call('zincrby',D,-$wait,w)
end
