-- Deletes a semaphore that holdfast created if all its permits are back and
-- Redisson does not listen.
--@needs KIND Z ears kind v
if not ears and redis.call('exists',Z)==0 and
  kind=='s '..string.format('%.0f',v) then
  redis.call('del',KEYS.lock,KEYS.holds,KIND)
end
