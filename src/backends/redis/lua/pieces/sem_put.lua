-- Writes the `k` permits of `owner`, which end at `due`.
--@takes owner k
--@needs Z due
for i=1,$k do
  redis.call('zadd',Z,due,$owner..':'..string.format('%.0f',i))
end
