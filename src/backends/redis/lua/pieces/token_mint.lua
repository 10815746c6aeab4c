-- Sets `n` to a higher token than any before: one more than the counter, and
-- at least the time, so that the loss of the counter does no harm.
--@needs TOKEN now
--@defines last n
local last=tonumber(redis.call('get',TOKEN)) or 0
local n=last<now and now or last+1
