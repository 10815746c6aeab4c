-- Turns the write hold of the owner `o` in the hash `k` into a read hold that
-- ends at the same time, or `ms` from now if that is later.
--@takes k holds o base ms
--@defines h
redis.call('hdel',$k,$o..':write')
redis.call('set',$base..':'..$o..':rwlock_timeout:1',1,'px',
  math.max($ms,redis.call('pttl',$k)))
redis.call('hset',$k,$o,1,'mode','read')
local h=redis.call('hget',$holds,$o)
if h then
  redis.call('hset',$holds,$o,(string.gsub(h,'^(.)\nw\n','%1\nr\n')))
end
