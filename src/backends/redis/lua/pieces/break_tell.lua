-- Notifies the holder of a mutex that its hold is broken. (If the holder is
-- not a holdfast client, the message is about an earlier hold, and is
-- ignored.)
do
  local w,n,about=string.match(redis.call('get',KEYS.info) or '',
    '^([^\n]*)\n[^\n]*\n%d+ (%d+)[^\n]*\n(%d+)')
  --@include gone.lua
end
