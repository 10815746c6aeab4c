-- Acquires a read-write lock: `want` is r or w, `base` is {name}. README.md
-- describes the arguments and the reply.
--@keys lock holds token line party
--@args owner lease_ms valid_until_us token_ttl_ms about queue fair listening want base hand_ms
--@include clock.lua
local TOKEN,L,P,BASE,alone=KEYS.token,KEYS.line,KEYS.party,ARGV.base
local KEY=BASE..':'..ARGV.owner..':rwlock_timeout:1'
--@include read_key.lua command='hmget',KEYS.lock,'mode',ARGV.owner,ARGV.owner..':write';
--@   leave=line_leave.lua
local f,mode=has,has[1]
if not mode and redis.call('exists',KEYS.lock)==1 then
  --@include line_mismatch.lua
end
if f[2] or f[3] then
  if f[2] then redis.call('set',KEY,1,'px',ARGV.lease_ms) end
  --@include again.lua info=KEYS.holds
  --@include token_shared.lua keep=ARGV.token_ttl_ms
  return {2,now,n}
end
if (not mode or mode=='read' and ARGV.want=='r') and $no_line then
  --@include rw_grant.lua
  return {2,now,n}
end
--@include rw_line.lua
--@include line_gone.lua
--@include rw_readers.lua
--@include rw_call.lua
if ARGV.want=='w' and mode=='read' and readers()==0 then
  redis.call('del',KEYS.lock,KEYS.holds)
  mode=false
end
local fits,passed=not mode or mode=='read' and ARGV.want=='r'
if fits and ARGV.fair=='1' then
  walk(function(w,til,seen,ear,fair,want,hand,size,about)
    if w==ARGV.owner then return 2 end
    if ARGV.want=='w' or want=='w' then
      if gone(w,ear,about) then dropped=true return 1 end
      fits,passed=false,til-math.floor(now/1000)
      return 2
    end
  end)
  if not fits and ARGV.queue=='2' then call(mode) end
end
if fits then
  --@include line_come.lua
  --@include rw_grant.lua
  if ARGV.want=='r' and (by_chance or not mode and ARGV.fair=='0') and
    redis.call('exists',L)==1 then
    call('read')
  end
  return {2,now,n}
end
--@include line_stand.lua ttl=redis.call('pttl',KEYS.lock);
--@   foreign=redis.call('hlen',KEYS.lock)-1>redis.call('hlen',KEYS.holds);
--@   size='0'
