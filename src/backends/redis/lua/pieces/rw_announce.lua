-- After a write, a 1 wakes all of Redisson's waiters that sleep. A waiter
-- that is about to sleep loses the 1 and would sleep until the lease that it
-- has seen ends, but it keeps a 0. Both have a 0 in front, which our waiters
-- ignore (subscribe.c): they are told one by one.
--@takes was_write
--@needs CH MARK ears
--@defines s
--@include ears.lua
if ears and $was_write then redis.call('publish',CH,'01') end
if ears then redis.call('publish',CH,'00') end
