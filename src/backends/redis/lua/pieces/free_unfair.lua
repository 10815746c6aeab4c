-- Used when an unfair holder has released the lock. An unfair waiter is next;
-- if there is none, the fair waiters are notified.
--@needs C CH D MARK Q S TOKEN W given now
if redis.call('exists',W,Q)==0 then
  redis.call('publish',CH,'0')
else
  --@include crowd_wake.lua
  if not told then
    --@include fair_head.lua
    --@include fair_lower.lua
    --@include fair_tell.lua
    --@include fair_hand_over.lua
  end
end
