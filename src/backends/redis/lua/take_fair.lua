-- Acquires a fair mutex. README.md describes the arguments and the reply.
--@keys lock info token queue timeout seen
--@args owner lease_ms valid_until_us token_ttl_ms about queue hand_ms channel listening
--@include clock.lua
local TOKEN,Q,D,S,CH=KEYS.token,KEYS.queue,KEYS.timeout,KEYS.seen,ARGV.channel
--@include read_key.lua command='hlen',KEYS.lock; leave=fair_leave.lua
local held,passed=has>0
if not held and ARGV.queue~='2' and redis.call('exists',Q)==0 then
  --@include grant.lua kind="f"; lock=hold_hash.lua
end
--@include fair_head.lua
--@include fair_lower.lua
--@include fair_tell.lua
if held then
  --@include held.lua kind="f"; leave=fair_leave.lua
else
  local w=head()
  -- If another waiter is first, make sure that it has been notified.
  if ARGV.queue=='2' and w and w~=ARGV.owner then
    local til=tell()
    passed=til and til-math.floor(now/1000)
    w=redis.call('lindex',Q,0)
  end
  if not w or w==ARGV.owner then
    if w then
      drop(w)
      lower()
    else
      redis.call('hdel',S,ARGV.owner)
    end
    --@include grant.lua kind="f"; lock=hold_hash.lua
  end
end
if ARGV.queue=='0' then return {4,now} end
-- The caller joins the queue, or shows that it is still waiting. `d` is its
-- deadline. While the caller is alive, a Redisson client must not find this
-- deadline passed, even though the deadline is lowered by one wait ($wait)
-- whenever a waiter before the caller leaves. The deadline of the first waiter
-- is not lowered, and that waiter polls often. Its deadline is therefore short,
-- so that it passes soon after the waiter's death.
--
-- The reply says when the next poll is useful: when the lease ends or, if it is
-- the first waiter's turn, when that waiter counts as dead (`passed`). If the
-- caller dies, the keys expire; they live longer if Redisson waits too.
local d
if ARGV.queue=='2' then
  d=tonumber(redis.call('zscore',D,ARGV.owner))
  if not d then redis.call('hdel',S,ARGV.owner) end
end
local q,ms=redis.call('llen',Q),math.floor(now/1000)
local near
if d then
  --@include near.lua list=Q
else
  q=q+1
  --@include near_new.lua
  q=q-1
end
-- In a long queue most polls skip this check.
if ARGV.queue=='2' and ($is_first or q<=100) then
  --@include fair_tidy.lua
end
local foreign=q>redis.call('hlen',S)
local first=near==1
local ttl=redis.call('pttl',KEYS.lock)
if not d then
  d=ms+math.max(ttl,0)+$wait*(q+1)
  if first then
    d=ms+$RD_ALIVE_MS
  elseif foreign then
    local l=redis.call('zscore',D,redis.call('lindex',Q,-1))
    d=math.max(tonumber(l) or 0,ms)+$wait
  end
  -- The caller's first request may arrive after its second one
  -- (line_stand.lua).
  if redis.call('zadd',D,'nx',d,ARGV.owner)==1 then
    q=redis.call('rpush',Q,ARGV.owner)
  end
elseif first then
  redis.call('zadd',D,ms+$RD_ALIVE_MS,ARGV.owner)
else
  local least=ms+$RD_ALIVE_MS+
    $wait*(($is_first and near or 6)-1)
  if d<least then redis.call('zadd',D,least,ARGV.owner) end
end
--@include alive_until.lua
redis.call('hset',S,ARGV.owner,alive..ARGV.listening..' '..ARGV.hand_ms..' '..
  ARGV.about)
if q==1 or foreign or ARGV.queue=='2' then
  local keep=foreign and 86400000 or $RD_KEEP_MS
  redis.call('pexpire',Q,keep)
  redis.call('pexpire',D,keep)
  redis.call('pexpire',S,keep)
end
foreign=foreign or held and redis.call('exists',KEYS.info)==0
return {3,now,passed or ttl,foreign and 1 or 0,q,$nearness}
