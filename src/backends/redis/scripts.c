/*
 * What the server does for us, one Lua text per verb. Rules:
 * - Idempotent by owner ("<uuid>:<hold id>"): asked again, each says the same.
 * - The server's clock alone. A question carries the time until which it is
 *   meant, so that one that was stuck in a dead connection grants nothing.
 * - The lock's key comes last when granting: what is written before it has an
 *   expiry and harms nobody if the rest fails.
 * - Wrong types are not looked for: the command that stumbles on one answers
 *   WRONGTYPE, which error.c knows.
 * - KEYS and ARGV are bound, nothing is pasted in. The first keys are always
 *   the lock and the holder's information.
 *
 * Waking: every client of ours listens to one channel of its own,
 * "holdfast:wake:<uuid>"; a message there is 0 (unfair) or 1 (fair) and the
 * name. PUBLISH tells how many heard it, so that the dead are passed over at
 * once.
 *
 *   TAKE       KEYS lock info waiters token
 *   TAKE_FAIR  KEYS lock info token queue timeout seen
 *   TAKE_S     KEYS lock info waiters token
 *              ARGV owner lease_ms valid_until_us token_ttl_ms about queue
 *                   [fair: channel listening]
 *     valid_until_us 0: always. about: "pid\nhost\nlabel". queue: 0 a try, 1
 *     may queue, 2 so, and not for the first time. listening: 0 or 1.
 *     Answers: enum rd_take.
 *   DROP       KEYS lock info waiters             ARGV owner channel mark
 *   DROP_FAIR  KEYS lock info queue timeout seen  ARGV owner channel
 *   DROP_S     KEYS lock info waiters             ARGV owner
 *     1: it was ours, and is free. 0: it was not.
 *   LEAVE...   as DROP, for one who may be in the queue or hold it. If it is
 *              free, and we may have been told so, the next is told instead.
 *   RENEW...   KEYS lock info ...  ARGV "uuid:" hold_id lease_ms ...
 *     one character for each lock, 1: ours, 0: not
 *   INSPECT... KEYS lock info waiters token queue
 *     {kind, owner, pttl, token, info, queue, waiters}; kind 0: free, 1: held,
 *     2: of another kind. At most 1000 waiters.
 *   LIST...    ARGV cursor pattern count
 *     {next cursor, keys ...}
 *   BREAK      KEYS lock info waiters queue timeout seen  ARGV "" channel mark
 *     1: was held. 0: was not. 6: of another kind.
 */
#include "redis.h"

/* clang-format off */

#define WAKE_CHANNEL "'holdfast:wake:'..string.sub(w,1,36)"

/* now: microseconds */
#define CLOCK                                                                  \
    "local t=redis.call('time')\n"                                             \
    "local now=t[1]*1000000+t[2]\n"                                            \
    "if ARGV[3]~='0' and now>tonumber(ARGV[3]) then return {5,now} end\n"

/*
 * A higher token than any before: one more than the counter, at least the
 * time, so that a lost counter does not matter. grant writes who holds it and
 * hands it out; again is the answer to one who holds it already.
 */
#define GRANT(kind, write)                                                     \
    "local function token()\n"                                                 \
    "  local n=(tonumber(redis.call('get',TOKEN)) or 0)+1\n"                   \
    "  if n<now then n=now end\n"                                              \
    "  redis.call('set',TOKEN,string.format('%.0f',n),'px',ARGV[4])\n"         \
    "  return n\n"                                                             \
    "end\n"                                                                    \
    "local function grant()\n"                                                 \
    "  local n=token()\n"                                                      \
    "  local since=string.format('%.0f',math.floor(now/1000))\n"               \
    "  redis.call('set',KEYS[2],ARGV[1]..'\\n" kind "\\n'..since..'\\n'"       \
    "..ARGV[5],'px',ARGV[2])\n"                                                \
    write                                                                      \
    "  return {2,now,n}\n"                                                     \
    "end\n"                                                                    \
    "local function again()\n"                                                 \
    "  redis.call('pexpire',KEYS[1],ARGV[2])\n"                                \
    "  redis.call('pexpire',KEYS[2],ARGV[2])\n"                                \
    "  return {2,now,tonumber(redis.call('get',TOKEN)) or token()}\n"          \
    "end\n"

#define GRANT_HASH(kind)                                                       \
    GRANT(kind,                                                                \
    "  redis.call('hset',KEYS[1],ARGV[1],1)\n"                                 \
    "  redis.call('pexpire',KEYS[1],ARGV[2])\n")

#define GRANT_STRING(kind)                                                     \
    GRANT(kind,                                                                \
    "  redis.call('set',KEYS[1],ARGV[1],'px',ARGV[2])\n")

/*
 * Unfair. W: zset of waiters, owner -> when it came. The longest waiting one
 * that listens is told, alone; it is out of the set then, and comes back if
 * somebody was faster. Redisson's waiters all listen to CH. So do ours, to
 * hear Redisson: they listen to MARK as well, in the same command, so that
 * more ears on CH than on MARK are Redisson's. "00" is 0 to Redisson, and
 * tells ours that one of them has been told already. Where the server forbids
 * PUBSUB, CH is told always.
 */
#define WAKE                                                                   \
    "local function wake()\n"                                                  \
    "  while true do\n"                                                        \
    "    local w=redis.call('zpopmin',W)[1]\n"                                 \
    "    if not w then redis.call('publish',CH,'0') return end\n"              \
    "    if redis.call('publish'," WAKE_CHANNEL ",'0'..KEYS[1])>0\n"           \
    "    then break end\n"                                                     \
    "  end\n"                                                                  \
    "  local s=redis.pcall('pubsub','numsub',CH,MARK)\n"                       \
    "  if s.err or s[2]>s[4] then redis.call('publish',CH,'00') end\n"         \
    "end\n"

/* The same without Redisson. */
#define WAKE_S                                                                 \
    "local function wake()\n"                                                  \
    "  while true do\n"                                                        \
    "    local w=redis.call('zpopmin',W)[1]\n"                                 \
    "    if not w or redis.call('publish'," WAKE_CHANNEL ",'0'..KEYS[1])>0\n"  \
    "    then return end\n"                                                    \
    "  end\n"                                                                  \
    "end\n"

/* Comes into the set, if not there. It outlives its last visitor by 10 s. The
 * last number: a holder without our information is not one of us. */
#define ENLIST                                                                 \
    "if ARGV[6]=='0' then return {4,now} end\n"                                \
    "redis.call('zadd',W,'nx',now,ARGV[1])\n"                                  \
    "redis.call('pexpire',W,10000)\n"                                          \
    "return {3,now,redis.call('pttl',KEYS[1]),1-redis.call('exists',KEYS[2])}"

/* The hash is there: a read-write lock, ours (an answer was lost), or somebody
 * else's. */
#define HELD(leave)                                                            \
    "local f=redis.call('hmget',KEYS[1],ARGV[1],'mode')\n"                     \
    "if f[2] then\n"                                                           \
    "  if ARGV[6]=='2' then\n"                                                 \
    leave                                                                      \
    "  end\n"                                                                  \
    "  return {6,now}\n"                                                       \
    "end\n"                                                                    \
    "if f[1] then return again() end\n"

/*
 * Fair, in Redisson's layout. Q: list of owners. D: zset, owner -> deadline in
 * ms, by which Redisson drops the dead. S: zset of ours, owner -> last sign of
 * life in ms (in the future: not listening yet). Ours that gave no sign for
 * 3 s is dead, whatever D says; not in S is Redisson's, and D counts. head is
 * the first that lives, and its sign if it is another one of ours; wake tells
 * it, and says the same.
 */
#define FAIR                                                                   \
    "local function drop(w)\n"                                                 \
    "  redis.call('lpop',Q)\n"                                                 \
    "  redis.call('zrem',D,w)\n"                                               \
    "  redis.call('zrem',S,w)\n"                                               \
    "end\n"                                                                    \
    "local function head()\n"                                                  \
    "  while true do\n"                                                        \
    "    local w=redis.call('lindex',Q,0)\n"                                   \
    "    if not w or w==ARGV[1] then return w end\n"                           \
    "    if not ms then\n"                                                     \
    "      local t=redis.call('time')\n"                                       \
    "      ms=t[1]*1000+math.floor(t[2]/1000)\n"                               \
    "    end\n"                                                                \
    "    local s=tonumber(redis.call('zscore',S,w))\n"                         \
    "    if s and s+3000>ms then return w,s end\n"                             \
    "    local d=not s and tonumber(redis.call('zscore',D,w))\n"               \
    "    if d and d>ms then return w end\n"                                    \
    "    drop(w)\n"                                                            \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "local function wake()\n"                                                  \
    "  while true do\n"                                                        \
    "    local w,s=head()\n"                                                   \
    "    if not w or w==ARGV[1] then return end\n"                             \
    "    if not s then redis.call('publish',CH..':'..w,'0') return end\n"      \
    "    if redis.call('publish'," WAKE_CHANNEL ",'1'..KEYS[1])>0 or s>ms\n"   \
    "    then return s end\n"                                                  \
    "    drop(w)\n"                                                            \
    "  end\n"                                                                  \
    "end\n"

/* Is somebody of Redisson's in the queue? Then deadlines are kept as it does:
 * each waits behind the one before, and who goes or leaves lowers those
 * behind by his own wait. */
#define FOREIGN "redis.call('llen',Q)>redis.call('zcard',S)"
#define WAIT "300000"

#define LEAVE_QUEUE                                                            \
    "if redis.call('zrem',D,ARGV[1])==1 then\n"                                \
    "  if " FOREIGN " then\n"                                                  \
    "    local behind=false\n"                                                 \
    "    for _,w in ipairs(redis.call('lrange',Q,0,-1)) do\n"                  \
    "      if behind then redis.call('zincrby',D,-" WAIT ",w) end\n"           \
    "      behind=behind or w==ARGV[1]\n"                                      \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "  redis.call('lrem',Q,1,ARGV[1])\n"                                       \
    "end\n"                                                                    \
    "redis.call('zrem',S,ARGV[1])\n"

/* It is free, and we are the first, or there is nobody. */
#define TAKE_FAIR_GRANT                                                        \
    "if w then\n"                                                              \
    "  drop(w)\n"                                                              \
    "  if " FOREIGN " then\n"                                                  \
    "    for _,o in ipairs(redis.call('zrange',D,0,-1)) do\n"                  \
    "      redis.call('zincrby',D,-" WAIT ",o)\n"                              \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "elseif ARGV[6]=='2' then\n"                                               \
    "  redis.call('zrem',S,ARGV[1])\n"                                         \
    "end\n"                                                                    \
    "return grant()\n"

/*
 * Into the queue, or still there: then with a sign of life, and with a
 * deadline that no Redisson client would take for past. A look is worth it
 * when the lease ends, for the first in the queue, or when the first is given
 * up, if it was its turn (passed). Who dies here leaves the keys behind: they
 * expire, late where Redisson uses them too.
 */
#define TAKE_FAIR_QUEUE                                                        \
    "local d\n"                                                                \
    "if ARGV[6]=='2' then\n"                                                   \
    "  d=tonumber(redis.call('zscore',D,ARGV[1]))\n"                           \
    "  if not d then redis.call('zrem',S,ARGV[1]) end\n"                       \
    "end\n"                                                                    \
    "local q=redis.call('llen',Q)\n"                                           \
    "local foreign=q>redis.call('zcard',S)\n"                                  \
    "local first=q==0\n"                                                       \
    "if d then first=redis.call('lindex',Q,0)==ARGV[1] end\n"                  \
    "local ttl=first and redis.call('pttl',KEYS[1]) or -1\n"                   \
    "if not d then\n"                                                          \
    "  d=ms+math.max(ttl,0)+" WAIT "*(q+1)\n"                                  \
    "  if foreign then\n"                                                      \
    "    local l=redis.call('zscore',D,redis.call('lindex',Q,-1))\n"           \
    "    d=math.max(tonumber(l) or 0,ms)+" WAIT "\n"                           \
    "  end\n"                                                                  \
    "  redis.call('zadd',D,d,ARGV[1])\n"                                       \
    "  redis.call('rpush',Q,ARGV[1])\n"                                        \
    "elseif d<ms+" WAIT " then\n"                                              \
    "  redis.call('zadd',D,ms+" WAIT ",ARGV[1])\n"                             \
    "end\n"                                                                    \
    "redis.call('zadd',S,ARGV[8]=='1' and ms or ms+2000,ARGV[1])\n"            \
    "if q==0 or ARGV[6]=='2' then\n"                                           \
    "  local keep=foreign and 86400000 or 600000\n"                            \
    "  redis.call('pexpire',Q,keep)\n"                                         \
    "  redis.call('pexpire',D,keep)\n"                                         \
    "  redis.call('pexpire',S,keep)\n"                                         \
    "end\n"                                                                    \
    "foreign=foreign or held and redis.call('exists',KEYS[2])==0\n"            \
    "return {3,now,passed or ttl,foreign and 1 or 0}"

#define RENEW(is_ours)                                                         \
    "local r={}\n"                                                             \
    "for i=1,#KEYS,2 do\n"                                                     \
    "  local owner,ms=ARGV[1]..ARGV[i+1],ARGV[i+2]\n"                          \
    "  if " is_ours " then\n"                                                  \
    "    redis.call('pexpire',KEYS[i],ms)\n"                                   \
    "    redis.call('pexpire',KEYS[i+1],ms)\n"                                 \
    "    r[#r+1]='1'\n"                                                        \
    "  else\n"                                                                 \
    "    r[#r+1]='0'\n"                                                        \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return table.concat(r)"

#define INSPECTED(queue)                                                       \
    "return {kind,owner,redis.call('pttl',KEYS[1]),redis.call('get',KEYS[4]),\n" \
    "  redis.call('get',KEYS[2])," queue ",redis.call('zrange',KEYS[3],0,999)}"

const char *const hf__rd_script[RD_SCRIPTS] = {
    [RD_TAKE] =
    CLOCK
    "local W,TOKEN=KEYS[3],KEYS[4]\n"
    GRANT_HASH("u")
    "if redis.call('hlen',KEYS[1])==0 then\n"
    "  if ARGV[6]=='2' then redis.call('zrem',W,ARGV[1]) end\n"
    "  return grant()\n"
    "end\n"
    HELD("redis.call('zrem',W,ARGV[1])\n")
    ENLIST,

    [RD_DROP] =
    "local W,CH,MARK=KEYS[3],ARGV[2],ARGV[3]\n"
    WAKE
    "if redis.call('hdel',KEYS[1],ARGV[1])==0 then return 0 end\n"
    "redis.call('del',KEYS[2])\n"
    "wake()\n"
    "return 1",

    [RD_LEAVE] =
    "local W,CH,MARK=KEYS[3],ARGV[2],ARGV[3]\n"
    WAKE
    "redis.call('zrem',W,ARGV[1])\n"
    "local ours=redis.call('hdel',KEYS[1],ARGV[1])\n"
    "if ours==1 then redis.call('del',KEYS[2]) end\n"
    "if redis.call('exists',KEYS[1])==0 then wake() end\n"
    "return ours",

    [RD_TAKE_FAIR] =
    CLOCK
    "local TOKEN,Q,D,S,CH=KEYS[3],KEYS[4],KEYS[5],KEYS[6],ARGV[7]\n"
    "local ms,passed=math.floor(now/1000)\n"
    GRANT_HASH("f")
    FAIR
    "local held=redis.call('hlen',KEYS[1])>0\n"
    "if held then\n"
    HELD(LEAVE_QUEUE)
    "else\n"
    "  local w=head()\n"
    /* Not ours to take. Was the one told whose turn it is? */
    "  if ARGV[6]=='2' and w and w~=ARGV[1] then\n"
    "    local s=wake()\n"
    "    passed=s and s+3000-ms\n"
    "    w=redis.call('lindex',Q,0)\n"
    "  end\n"
    "  if not w or w==ARGV[1] then\n"
    TAKE_FAIR_GRANT
    "  end\n"
    "end\n"
    "if ARGV[6]=='0' then return {4,now} end\n"
    TAKE_FAIR_QUEUE,

    [RD_DROP_FAIR] =
    "local Q,D,S,CH=KEYS[3],KEYS[4],KEYS[5],ARGV[2]\n"
    "local ms\n"
    FAIR
    "if redis.call('hdel',KEYS[1],ARGV[1])==0 then return 0 end\n"
    "redis.call('del',KEYS[2])\n"
    "wake()\n"
    "return 1",

    [RD_LEAVE_FAIR] =
    "local Q,D,S,CH=KEYS[3],KEYS[4],KEYS[5],ARGV[2]\n"
    "local ms\n"
    FAIR
    LEAVE_QUEUE
    "local ours=redis.call('hdel',KEYS[1],ARGV[1])\n"
    "if ours==1 then redis.call('del',KEYS[2]) end\n"
    "if redis.call('exists',KEYS[1])==0 then wake() end\n"
    "return ours",

    [RD_RENEW] =
    RENEW("redis.pcall('hexists',KEYS[i],owner)==1"),

    [RD_INSPECT] =
    "local kind,owner,ty=0,false,redis.call('type',KEYS[1]).ok\n"
    "if ty=='hash' then\n"
    "  local f=redis.call('hkeys',KEYS[1])\n"
    "  owner=f[1]\n"
    "  kind=#f==1 and owner~='mode' and 1 or 2\n"
    "elseif ty~='none' then\n"
    "  kind=2\n"
    "end\n"
    INSPECTED("redis.call('lrange',KEYS[5],0,999)"),

    [RD_LIST] =
    "local s=redis.call('scan',ARGV[1],'match',ARGV[2],'count',ARGV[3],\n"
    "  'type','hash')\n"
    "local r={s[1]}\n"
    "for _,k in ipairs(s[2]) do\n"
    "  local f=redis.pcall('hlen',k)==1 and redis.call('hkeys',k)[1]\n"
    "  if f and string.find(f,'^%x+%-%x+%-%x+%-%x+%-%x+:%d+$') then\n"
    "    r[#r+1]=k\n"
    "  end\n"
    "end\n"
    "return r",

    [RD_BREAK] =
    "local W,CH,MARK=KEYS[3],ARGV[2],ARGV[3]\n"
    "local Q,D,S=KEYS[4],KEYS[5],KEYS[6]\n"
    "local ms\n"
    WAKE
    "local wake_unfair=wake\n"
    FAIR
    "if redis.call('hlen',KEYS[1])==0 then return 0 end\n"
    "if redis.call('hexists',KEYS[1],'mode')==1 then return 6 end\n"
    "redis.call('del',KEYS[1],KEYS[2])\n"
    "wake_unfair()\n"
    "wake()\n"
    "return 1",

    [RD_TAKE_S] =
    CLOCK
    "local W,TOKEN=KEYS[3],KEYS[4]\n"
    GRANT_STRING("u")
    "local f=redis.call('get',KEYS[1])\n"
    "if not f then\n"
    "  if ARGV[6]=='2' then redis.call('zrem',W,ARGV[1]) end\n"
    "  return grant()\n"
    "end\n"
    "if f==ARGV[1] then return again() end\n"
    ENLIST,

    [RD_DROP_S] =
    "local W=KEYS[3]\n"
    WAKE_S
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end\n"
    "redis.call('del',KEYS[1],KEYS[2])\n"
    "wake()\n"
    "return 1",

    [RD_LEAVE_S] =
    "local W=KEYS[3]\n"
    WAKE_S
    "redis.call('zrem',W,ARGV[1])\n"
    "local f=redis.call('get',KEYS[1])\n"
    "if f==ARGV[1] then redis.call('del',KEYS[1],KEYS[2]) end\n"
    "if not f or f==ARGV[1] then wake() end\n"
    "return f==ARGV[1] and 1 or 0",

    [RD_RENEW_S] =
    RENEW("redis.pcall('get',KEYS[i])==owner"),

    [RD_INSPECT_S] =
    "local kind,owner,ty=0,false,redis.call('type',KEYS[1]).ok\n"
    "if ty=='string' then\n"
    "  kind,owner=1,redis.call('get',KEYS[1])\n"
    "elseif ty~='none' then\n"
    "  kind=2\n"
    "end\n"
    INSPECTED("{}"),

    /* Of the strings of others nobody knows which are locks: the keys with our
     * information, alone. */
    [RD_LIST_S] =
    "local s=redis.call('scan',ARGV[1],'match',ARGV[2],'count',ARGV[3],\n"
    "  'type','string')\n"
    "local r={s[1]}\n"
    "for _,k in ipairs(s[2]) do r[#r+1]=k end\n"
    "return r",

    [RD_BREAK_S] =
    "local W=KEYS[3]\n"
    WAKE_S
    "if not redis.call('get',KEYS[1]) then return 0 end\n"
    "redis.call('del',KEYS[1],KEYS[2])\n"
    "wake()\n"
    "return 1",
};
/* clang-format on */
