-- Sends a command about the lock's key; its reply is in `has`. If the key has
-- the wrong type, a waiter leaves the queue (`leave`), and the error names the
-- type.
--@takes command leave
--@defines has
local has=redis.pcall($command)
if type(has)=='table' and has.err then
  if ARGV.queue=='2' then
    --@include $leave
  end
  if string.find(has.err,'^WRONGTYPE') then
    return redis.error_reply('WRONGTYPE '..redis.call('type',KEYS.lock).ok)
  end
  has=redis.call($command)
end
