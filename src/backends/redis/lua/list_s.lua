-- {next cursor, keys ...} of the string dialect. Nobody can tell which
-- strings of other libraries are locks: the pattern finds the keys with our
-- information alone.
--@args cursor pattern count
local s=redis.call('scan',ARGV.cursor,'match',ARGV.pattern,'count',ARGV.count,
  'type','string')
local r={s[1]}
for _,k in ipairs(s[2]) do r[#r+1]=k end
return r
