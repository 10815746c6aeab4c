-- Tells the holder of a mutex that it is taken away. (What is said of an
-- earlier hold, because this one is not of ours, nobody heeds.)
do
  local w,n,about=string.match(redis.call('get',KEYS.info) or '',
    '^([^\n]*)\n[^\n]*\n%d+ (%d+)[^\n]*\n(%d+)')
  --@include gone.lua
end
