-- In the string dialect the lock is not handed over: clients of other
-- libraries poll the string, and would never find the lock free if holdfast's
-- clients passed it on among themselves.
--@needs C TOKEN W
--@defines given shared told
local told,given,shared=nil,nil,true
--@include crowd_next.lua lock=hold_string.lua
