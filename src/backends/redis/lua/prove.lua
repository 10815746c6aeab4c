-- Publishes ARGV.text, and the wishes that ask.lua has kept for the client.
-- Returns how many connections listen to the channel at this server. If the
-- server does not reveal that, returns how many connections received ARGV.text.
--@args channel text
local n=redis.call('publish',ARGV.channel,ARGV.text)
for _,id in ipairs(redis.pcall('hkeys',ARGV.channel)) do
  redis.call('publish',ARGV.channel,'w'..id)
  redis.pcall('hdel',ARGV.channel,id)
end
local s=redis.pcall('pubsub','numsub',ARGV.channel)
return s.err and n or s[2]
