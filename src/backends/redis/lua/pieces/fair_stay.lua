-- Keeps the keys of the queue for a day, because Redisson waits too: they must
-- not depend on the polls of holdfast's clients.
--@needs D Q
redis.call('pexpire',Q,86400000)
redis.call('pexpire',D,86400000)
