-- In the string dialect the lock is not handed over: other libraries poll the
-- string too, and would never find it free if holdfast's clients passed it on
-- among themselves.
--@needs C TOKEN W
--@defines given shared told
local told,given,shared=nil,nil,true
--@include crowd_next.lua lock=hold_string.lua
