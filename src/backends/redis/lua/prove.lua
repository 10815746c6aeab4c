-- How many listen to the channel at this server, after publishing a text
-- there. If the server does not tell, how many heard it. What ask.lua has kept
-- for the client is said now.
--@args channel text
local n=redis.call('publish',ARGV.channel,ARGV.text)
for _,id in ipairs(redis.pcall('hkeys',ARGV.channel)) do
  redis.call('publish',ARGV.channel,'w'..id)
  redis.pcall('hdel',ARGV.channel,id)
end
local s=redis.pcall('pubsub','numsub',ARGV.channel)
return s.err and n or s[2]
