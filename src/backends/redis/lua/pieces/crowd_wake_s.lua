-- In the string dialect nothing is handed over: other libraries look for the
-- string too, and would never find it free if our clients passed it on among
-- themselves.
--@needs C TOKEN W
--@defines given shared told
local told,given,shared=nil,nil,true
--@include crowd_next.lua lock=hold_string.lua
