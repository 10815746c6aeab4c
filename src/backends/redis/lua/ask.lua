-- Notifies the holders that the lock is wanted. The named arguments are
-- followed by two more for each holder that is a holdfast client: the owner,
-- and the length of its prefix. Returns 1 if the holders were notified, or {5,
-- now} if the request was too late.
--
-- A holder whose client does not listen may be about to connect, for the first
-- time or again. The message is therefore kept, in a key with the name of the
-- client's channel.
--@keys lock
--@args valid_until_us
--@include clock.lua
for i=2,#ARGV,2 do
  local w,about=ARGV[i],ARGV[i+1]
  local to,id=$wake_channel,string.sub(w,38)
  if redis.call('publish',to,'w'..id)==0 then
    redis.call('hset',to,id,1)
    redis.call('pexpire',to,$RD_KEEP_MS)
  end
end
return 1
