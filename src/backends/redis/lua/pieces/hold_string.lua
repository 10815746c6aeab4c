-- Writes the lock's key in the string dialect.
--@takes owner ms
redis.call('set',KEYS.lock,$owner,'px',$ms)
