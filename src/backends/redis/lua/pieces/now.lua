-- Sets `now` to the server's time in microseconds.
--@defines now t
local t=redis.call('time')
local now=t[1]*1000000+t[2]
