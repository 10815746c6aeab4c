-- Writes who holds the lock, for INSPECT.
--@takes owner fair want about
--@needs n now
redis.call('hset',KEYS.holds,$owner,($fair=='1' and 'f' or 'u')..
  '\n'..$want..'\n'..n..'\n'..string.format('%.0f',math.floor(now/1000))..
  '\n'..$about)
