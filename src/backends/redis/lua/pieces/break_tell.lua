-- Notifies the holder of a mutex that its hold was broken. If the holder is not
-- a holdfast client, KEYS.info may be about an earlier hold, whose client
-- ignores the message.
do
  local w,n,about=string.match(redis.call('get',KEYS.info) or '',
    '^([^\n]*)\n[^\n]*\n%d+ (%d+)[^\n]*\n(%d+)')
  --@include gone.lua
end
