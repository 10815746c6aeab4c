-- Sets `near` to the caller's place if it is among the first of the list, or to
-- $last if it is among the last. Otherwise `near` stays nil.
--@takes list
--@needs near
for i,w in ipairs(redis.call('lrange',$list,0,$RD_POLL_FIRST-1)) do near=near or w==ARGV.owner and i end
for _,w in ipairs(near and {} or redis.call('lrange',$list,-$RD_POLL_LAST,-1)) do near=near or w==ARGV.owner and $last end
