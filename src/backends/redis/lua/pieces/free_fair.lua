-- Used when a fair holder has released the lock. The first fair waiter is next;
-- if there is none, the unfair waiters are notified.
--@needs C CH D MARK Q S TOKEN W given now
if redis.call('exists',W,Q)>0 then
  --@include fair_head.lua
  --@include fair_lower.lua
  --@include fair_tell.lua
  --@include fair_hand_over.lua
  if not given and redis.call('exists',Q)==0 then
    --@include crowd_wake.lua
  end
else
  redis.call('publish',CH,'0')
end
