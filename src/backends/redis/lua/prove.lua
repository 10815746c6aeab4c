-- How many listen to the channel at this server, after publishing a text
-- there. If the server does not tell, how many heard it.
--@args channel text
local n=redis.call('publish',ARGV.channel,ARGV.text)
local s=redis.pcall('pubsub','numsub',ARGV.channel)
return s.err and n or s[2]
