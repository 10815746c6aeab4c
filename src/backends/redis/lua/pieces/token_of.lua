-- Sets `n` to the token of a new hold, exclusive or shared. `keep` is how long
-- the counter is kept, in ms ('0': for ever).
--@takes is_exclusive keep
--@needs TOKEN now
--@defines n token
local token
if $is_exclusive then
  --@include token_mint.lua
  --@include token_write.lua keep=$keep
  token=string.format('%.0f',n)
else
  --@include token_shared.lua keep=$keep
  token=n
end
local n=token
