-- Gives up a semaphore, whether the owner holds permits or waits for them. If
-- permits are free, the owner may have got the message that says so, and the
-- script notifies the next waiter instead. Returns 1 if the owner had permits,
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
