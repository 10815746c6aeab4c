-- Publishes to Redisson's waiters how many permits are free. Holdfast's waiters
-- ignore a number with a 0 in front (subscribe.c).
--@needs CH MARK ears v
--@defines s
--@include ears.lua
if ears then redis.call('publish',CH,'0'..string.format('%.0f',v)) end
