-- Sets `ears` to whether Redisson's waiters listen: CH has more listeners than
-- MARK, or the server does not reveal how many.
--@needs CH MARK ears
--@defines s
local s=redis.pcall('pubsub','numsub',CH,MARK)
ears=s.err or s[2]>s[4]
