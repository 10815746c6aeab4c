-- One server's part of Redlock. README.md describes the arguments and the
-- replies, redlock.h the protocol. The key `reserve` contains "base ahead", or
-- "base" if `ahead` is 0. A grant sets and returns `base`. If the owner gets
-- its majority with this vote, its token is higher than `base`, because the
-- client adds 1 to the highest base of the majority. `top` is `base` plus
-- `ahead`: a later grant here returns a base of at least `top`.
--@keys lock reserve
--@args op value number lease_ms keep_ms valid_until_us
local op,was=ARGV.op,redis.call('get',KEYS.reserve) or '0'
local base,ahead=tonumber(was),0
if not base then
  was,ahead=string.match(was,'^(%d+) (%d+)$')
  base,ahead=tonumber(was) or 0,tonumber(ahead) or 0
end
local top=base+ahead
if op=='g' then
  --@include now.lua
  if now>tonumber(ARGV.valid_until_us) then return {5,now} end
  if not redis.call('set',KEYS.lock,ARGV.value,'px',ARGV.lease_ms,'nx') then
    local has=redis.sha1hex(redis.call('get',KEYS.lock))
    return {4,now,tonumber(string.sub(has,1,8),16)}
  end
  if top<now then top=now end
  redis.call('psetex',KEYS.reserve,ARGV.keep_ms,string.format('%.0f ',top)..ARGV.number)
  return {2,now,top}
end
local has,number,answer,is=redis.call('get',KEYS.lock),tonumber(ARGV.number),0,nil
if has==ARGV.value and op~='r' then
  if op=='k' then
    redis.call('pexpire',KEYS.lock,ARGV.lease_ms)
  else
    redis.call('del',KEYS.lock)
  end
  answer,is=1,base<number and ARGV.number or was or '0'
elseif has==ARGV.value then
  if base<number then answer=1 end
elseif op=='k' and not has then
  --@include now.lua
  if now<=tonumber(ARGV.valid_until_us) then
    redis.call('set',KEYS.lock,ARGV.value,'px',ARGV.lease_ms)
    answer,is=3,top<number and ARGV.number or string.format('%.0f',top)
  end
end
if not is and top<number and (op~='r' or answer==1) then
  is=string.format('%.0f %.0f',base,number-base)
end
if is then redis.call('psetex',KEYS.reserve,ARGV.keep_ms,is) end
return answer
