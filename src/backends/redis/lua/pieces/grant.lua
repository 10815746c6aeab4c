-- Gives the lock to the caller, and ends the script.
--@takes kind lock
--@needs TOKEN now
--@defines keep last n
--@include token_mint.lua
--@include give.lua kind=$kind; lock=$lock; owner=ARGV.owner; ms=ARGV.lease_ms;
--@   about=ARGV.about; keep=ARGV.token_ttl_ms
return {2,now,n}
