-- Writes the hold of `owner` with the token n.
--@takes owner ms fair want about
--@needs BASE n now
--@include note.lua owner=$owner; fair=$fair; want=$want; about=$about
if redis.call('pttl',KEYS.holds)<tonumber($ms) then
  redis.call('pexpire',KEYS.holds,$ms)
end
if $want=='w' then
  redis.call('hset',KEYS.lock,'mode','write',$owner..':write',1)
else
  redis.call('set',BASE..':'..$owner..':rwlock_timeout:1',1,'px',$ms)
  redis.call('hset',KEYS.lock,'mode','read',$owner,1)
end
if redis.call('pttl',KEYS.lock)<tonumber($ms) then
  redis.call('pexpire',KEYS.lock,$ms)
end
