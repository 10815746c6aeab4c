-- Ends the script, because the name belongs to another kind of lock.
--@needs L P now
if ARGV.queue=='2' then
  --@include line_leave.lua
end
return {6,now}
