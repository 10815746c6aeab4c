-- Returns {next cursor, keys ...} of the string dialect. The strings of other
-- libraries cannot be distinguished from other data, so the pattern matches
-- only our own keys with the holder's information.
--@args cursor pattern count
local s=redis.call('scan',ARGV.cursor,'match',ARGV.pattern,'count',ARGV.count,
  'type','string')
local r={s[1]}
for _,k in ipairs(s[2]) do r[#r+1]=k end
return r
