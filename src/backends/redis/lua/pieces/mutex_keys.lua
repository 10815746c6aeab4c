-- Begins the scripts that release a mutex. fair_head.lua and crowd_wake.lua
-- explain the names.
--@defines C CH D MARK Q S TOKEN W given now
--@include crowd_keys.lua
local Q,D,S,CH,MARK=KEYS.queue,KEYS.timeout,KEYS.seen,ARGV.channel,ARGV.mark
local now,given
