-- Gives the lock to `owner` with the token n: writes the counter of tokens,
-- then the holder's information, and last the lock's key. `kind` is u or f,
-- `lock` the piece that writes the lock's key, `keep` how long the token is
-- kept.
--@takes kind lock owner ms about keep
--@needs TOKEN last n now
--@defines keep
--@include token_write.lua keep=$keep
redis.call('set',KEYS.info,$owner..'\n$kind\n'..
  string.format('%.0f %.0f',math.floor(now/1000),n)..'\n'..$about,
  'px',$ms)
--@include $lock owner=$owner; ms=$ms
