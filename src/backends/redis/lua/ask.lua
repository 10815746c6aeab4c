-- Tells the holders that the lock is wanted. The arguments are followed by two
-- for each holder of ours: the owner, and the length of its prefix. 1: they
-- were told. {5, now}: too late.
--
-- A client that does not listen just now may be about to connect, or to connect
-- again: what it is told is kept for it under the name of its channel.
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
