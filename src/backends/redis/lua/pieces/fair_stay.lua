-- Redisson waits too: the queue's keys stay for a day, whether holdfast's
-- clients poll or not.
--@needs D Q
redis.call('pexpire',Q,86400000)
redis.call('pexpire',D,86400000)
