-- Releases the permits of the owner. Returns 1 if the owner had permits, else
-- 0.
--@keys lock holds token line party permits kind
--@args owner channel mark base
--@include sem_keys.lua
--@include sem_rest.lua
if freed then
  if redis.call('exists',L)==1 then
    --@include now.lua
    --@include sem_line.lua
    --@include sem_call.lua
    alone=not ears
    call(v)
  end
  --@include sem_end.lua
end
return k>0 and 1 or 0
