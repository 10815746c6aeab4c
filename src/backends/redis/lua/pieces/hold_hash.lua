-- Writes the lock's key in Redisson's layout.
--@takes owner ms
redis.call('hset',KEYS.lock,$owner,1)
redis.call('pexpire',KEYS.lock,$ms)
