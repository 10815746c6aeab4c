-- Calls a command on the lock's key, and sets `has` to the reply. If the key
-- has the wrong type, the piece `leave` removes the caller from the queue, and
-- the script fails with an error that names the type.
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
