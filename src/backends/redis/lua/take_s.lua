-- Acquires a mutex of the string dialect. README.md describes the arguments
-- and the reply.
--@keys lock info waiters token crowd
--@args owner lease_ms valid_until_us token_ttl_ms about queue hand_ms
--@include clock.lua
--@include crowd_keys.lua
--@include read_key.lua command='get',KEYS.lock; leave=crowd_delist.lua
local f=has
if f==ARGV.owner then
  --@include again.lua info=KEYS.info
  f=nil
end
if not f then
  if ARGV.queue=='2' then
    --@include crowd_delist.lua
  end
  --@include grant.lua kind="u"; lock=hold_string.lua
end
--@include crowd_enlist.lua
