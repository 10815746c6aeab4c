-- Acquires an unfair mutex. README.md describes the arguments and the reply.
--@keys lock info waiters token crowd
--@args owner lease_ms valid_until_us token_ttl_ms about queue hand_ms
--@include clock.lua
--@include crowd_keys.lua
--@include read_key.lua command='hlen',KEYS.lock; leave=crowd_delist.lua
if has==0 then
  if ARGV.queue=='2' then
    --@include crowd_delist.lua
  end
  --@include grant.lua kind="u"; lock=hold_hash.lua
end
--@include held.lua kind="u"; leave=crowd_delist.lua
--@include crowd_enlist.lua
