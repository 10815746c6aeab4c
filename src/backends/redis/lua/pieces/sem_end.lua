-- All permits of a semaphore that holdfast made are back, and Redisson does
-- not listen: it is deleted.
--@needs KIND Z ears kind v
if not ears and redis.call('exists',Z)==0 and
  kind=='s '..string.format('%.0f',v) then
  redis.call('del',KEYS.lock,KEYS.holds,KIND)
end
