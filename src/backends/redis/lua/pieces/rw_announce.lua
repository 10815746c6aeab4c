-- Notifies Redisson's waiters. After a write, a 1 wakes all of those that
-- sleep. A waiter that is about to sleep misses the 1, and would sleep until
-- the end of the lease that it has seen; the 0, which is published too, is not
-- missed. Both numbers get a 0 in front. Holdfast's waiters ignore such numbers
-- (subscribe.c), because they get separate messages.
--@takes was_write
--@needs CH MARK ears
--@defines s
--@include ears.lua
if ears and $was_write then redis.call('publish',CH,'01') end
if ears then redis.call('publish',CH,'00') end
