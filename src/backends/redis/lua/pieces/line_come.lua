-- Removes the caller from the queue, because it gets the lock. Sets `by_chance`
-- if no message made the caller try, or if a dead waiter was removed. In either
-- case other waiters may have missed their messages.
--@needs P dropped forget
--@defines by_chance
local by_chance=dropped
if ARGV.queue=='2' then
  local p=redis.call('hget',P,ARGV.owner)
  by_chance=dropped or p and string.match(p,'^%d+ %d+ (%d)')~='2'
  if p then forget(ARGV.owner) end
end
