-- After a write, a 1 wakes all of Redisson's sleeping waiters. A waiter that
-- is about to sleep loses the 1 and would sleep until the end of the lease
-- that it has seen, but it keeps a 0. Both have a 0 in front, which holdfast's
-- waiters ignore (subscribe.c): each gets a message of its own.
--@takes was_write
--@needs CH MARK ears
--@defines s
--@include ears.lua
if ears and $was_write then redis.call('publish',CH,'01') end
if ears then redis.call('publish',CH,'00') end
