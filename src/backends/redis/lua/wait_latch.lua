-- Waits for a latch. The reply is the same as that of a TAKE: granted with
-- token 1 if the latch is 0, or with token 2 if it was set again after `round`.
-- The reply to a caller that must wait also contains the round, or 0 if it is
-- not known. A latch gets a new round each time holdfast sets it.
--@keys lock kind permits
--@args _ _ valid_until_us queue round
--@include clock.lua
--@include latch_count.lua
if v==0 then return {2,now,1} end
mark()
local round=tonumber(string.sub(kind or 'l',2)) or 0
if ARGV.round~='0' and round>0 and tonumber(ARGV.round)~=round then
  return {2,now,2}
end
if ARGV.queue=='0' then return {4,now} end
return {3,now,-1,1,1,1,round}
