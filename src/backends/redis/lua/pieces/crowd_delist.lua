-- Removes the owner from the unfair waiters.
--@needs C W
if redis.call('hdel',C,ARGV.owner)==1 then redis.call('lrem',W,1,ARGV.owner) end
