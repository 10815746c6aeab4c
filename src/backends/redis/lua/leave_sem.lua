-- Gives up a semaphore, for which the owner may be waiting, or of which it may
-- hold permits. If permits are free, the owner may have been notified of that,
-- so the script notifies the next waiter. Returns 1 if the owner had permits,
-- else 0.
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
