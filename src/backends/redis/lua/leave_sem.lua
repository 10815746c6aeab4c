-- Gives up a semaphore. The owner may be waiting, or may hold permits. If
-- permits are free, the owner may have been notified of that, so the next
-- waiter is notified instead. The reply is that of the release.
--@keys lock holds token line party permits kind
--@args owner channel mark base
--@include sem_keys.lua
--@include now.lua
--@include line_leave.lua
--@include sem_rest.lua
--@include sem_line.lua
--@include sem_call.lua
if redis.call('exists',L)==1 then
  alone=freed and not ears
  call(tonumber(v))
end
if freed then
  --@include sem_end.lua
end
return k>0 and 1 or 0
