-- Gives `k` permits to the caller, with the token n. A hold of all permits is
-- exclusive.
--@needs KIND TOKEN Z due k kind made met ms now out size v
--@defines n token
--@include token_of.lua is_exclusive=k==size; keep=ARGV.token_ttl_ms
--@include note.lua owner=ARGV.owner; fair=ARGV.fair; want=ARGV.want;
--@   about=ARGV.about
if v then
  redis.call('decrby',KEYS.lock,k)
else
  redis.call('set',KEYS.lock,size-k)
end
if not kind then
  kind=v and met or made
  redis.call('set',KIND,kind,'px',ARGV.lease_ms+86400000)
end
--@include sem_put.lua owner=ARGV.owner; k=k
--@include sem_keep.lua lock=KEYS.lock; holds=KEYS.holds; lease=ARGV.lease_ms;
--@   is_new=out==0
