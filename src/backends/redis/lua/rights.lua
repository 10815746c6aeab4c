-- Returns what the user of this connection is not allowed to use: {commands,
-- keys, channels}, each a list; or false before Redis 7, which cannot report
-- it. The arguments are the number of keys and of channels, the keys, the
-- channels, and the commands. A command "@hget" is checked with a key,
-- "&publish" with a channel, any other by itself.
--@args keys channels
local may,no,key,channel=redis.acl_check_cmd,{{},{},{}}
if not may then return false end
local last=2+ARGV.keys
for i=3,last do
  local k=ARGV[i]
  if may('get',k) or may('set',k,1) or may('del',k) or may('pttl',k) then
    key=key or k
  else
    table.insert(no[2],k)
  end
end
for i=last+1,last+ARGV.channels do
  local c=ARGV[i]
  if may('publish',c,1) or may('subscribe',c) then
    channel=channel or c
  else
    table.insert(no[3],c)
  end
end
for i=last+ARGV.channels+1,#ARGV do
  local w={}
  for word in string.gmatch(ARGV[i],'[^ @&]+') do w[#w+1]=word end
  local on=({['@']=key,['&']=channel})[string.sub(ARGV[i],1,1)]
  if on then w[2]=on end
  if (on or string.find(ARGV[i],'^%a')) and not may(unpack(w)) then
    table.insert(no[1],w[1])
  end
end
return no
