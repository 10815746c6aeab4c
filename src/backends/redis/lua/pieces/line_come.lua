-- The lock goes to the caller, which leaves the queue. `by_chance` says that
-- no message made it try, so other waiters may have missed theirs as well.
--@needs P dropped forget
--@defines by_chance
local by_chance=dropped
if ARGV.queue=='2' then
  local p=redis.call('hget',P,ARGV.owner)
  by_chance=dropped or p and string.match(p,'^%d+ %d+ (%d)')~='2'
  if p then forget(ARGV.owner) end
end
