-- Removes the caller from the queue.
--@needs L P
redis.call('lrem',L,1,ARGV.owner)
redis.call('hdel',P,ARGV.owner)
