-- Sends a command about the lock's key; its answer is in `has`. If the key
-- has the wrong type, a waiter leaves the queue (`leave`) before the error is
-- raised.
--@takes command leave
--@defines has
local has=redis.pcall($command)
if type(has)=='table' and has.err then
  if ARGV.queue=='2' then
    --@include $leave
  end
  has=redis.call($command)
end
