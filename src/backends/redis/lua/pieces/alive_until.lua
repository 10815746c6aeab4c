-- Sets `alive`, the beginning of a waiter's note: until when the waiter counts
-- as alive (it polls again before that), and the current time, both in ms.
-- `near` is the waiter's place and `q` the length of the queue. lock_poll_at()
-- in lock.c computes when the client polls.
--@needs near now q
--@defines alive ms
local ms=math.floor(now/1000)
local alive=string.format('%.0f %.0f ',ms+$RD_LATE_MS+(near and $RD_POLL_MS or math.min(math.max(q*$RD_POLL_EACH_MS,$RD_POLL_MS),$RD_POLL_MAX_MS)),ms)
