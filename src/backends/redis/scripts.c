/*
 * What the server does for us, one Lua text per verb. Rules:
 * - Idempotent by owner ("<uuid>:<hold id>"): asked again, each says the same.
 * - The server's clock alone. A question carries the time until which it is
 *   meant, so that one that was stuck in a dead connection grants nothing.
 * - The lock's hash comes last when granting: what is written before it has an
 *   expiry and harms nobody if the rest fails.
 * - Wrong types are not looked for: the command that stumbles on one answers
 *   WRONGTYPE, which error.c knows.
 *
 * The keys are always first the lock, then the holder's information. Waking:
 * every client of ours listens to one channel of its own,
 * "holdfast:wake:<uuid>"; a message there is 0 (unfair) or 1 (fair) and the
 * name. PUBLISH tells how many heard it, so that the dead are passed over at
 * once. KEYS and ARGV are bound, nothing is pasted in.
 */
#include "redis.h"

#define LISTENING "'holdfast:wake:'..string.sub(w,1,36)"

/* now: microseconds. ARGV[3]: meant until, 0: always. */
#define CLOCK                                                                  \
    "local t=redis.call('time') "                                              \
    "local now=t[1]*1000000+t[2] "                                             \
    "if ARGV[3]~='0' and now>tonumber(ARGV[3]) then return {5,now} end\n"

/*
 * A higher token than any before: one more than the counter, at least the
 * time, so that a lost counter does not matter. ARGV[4] is its expiry. grant
 * writes who holds it and hands it out: ARGV[1] owner, [2] lease in ms, [5]
 * "pid\nhost\nlabel". TOKEN is a local.
 */
#define GRANT(kind, write)                                                     \
    "local function token() "                                                  \
    "local n=(tonumber(redis.call('get',TOKEN)) or 0)+1 "                      \
    "if n<now then n=now end "                                                 \
    "redis.call('set',TOKEN,string.format('%.0f',n),'px',ARGV[4]) "            \
    "return n end\n"                                                           \
    "local function grant() "                                                  \
    "local n=token() "                                                         \
    "redis.call('set',KEYS[2],ARGV[1]..'\\n" kind "\\n'.."                     \
    "string.format('%.0f',math.floor(now/1000))..'\\n'..ARGV[5],"              \
    "'px',ARGV[2]) " write "return {2,now,n} end\n"                            \
    "local function again() "                                                  \
    "redis.call('pexpire',KEYS[1],ARGV[2]) "                                   \
    "redis.call('pexpire',KEYS[2],ARGV[2]) "                                   \
    "return {2,now,tonumber(redis.call('get',TOKEN)) or token()} end\n"

#define INTO_HASH                                                              \
    "redis.call('hset',KEYS[1],ARGV[1],1) "                                    \
    "redis.call('pexpire',KEYS[1],ARGV[2]) "

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
    "local function wake() "                                                   \
    "while true do "                                                           \
    "local w=redis.call('zpopmin',W)[1] "                                      \
    "if not w then redis.call('publish',CH,'0') return end "                   \
    "if redis.call('publish'," LISTENING ",'0'..KEYS[1])>0 "                   \
    "then break end end "                                                      \
    "local s=redis.pcall('pubsub','numsub',CH,MARK) "                          \
    "if s.err or s[2]>s[4] then redis.call('publish',CH,'00') end end\n"

/* The same without Redisson. */
#define WAKE_S                                                                 \
    "local function wake() "                                                   \
    "while true do "                                                           \
    "local w=redis.call('zpopmin',W)[1] "                                      \
    "if not w or redis.call('publish'," LISTENING ",'0'..KEYS[1])>0 "          \
    "then return end end end\n"

/* Comes into the set, if not there. It outlives its last visitor by 10 s. */
#define ENLIST                                                                 \
    "redis.call('zadd',W,'nx',now,ARGV[1]) "                                   \
    "redis.call('pexpire',W,10000) "

/*
 * Fair, in Redisson's layout. Q: list of owners. D: zset, owner -> deadline in
 * ms, by which Redisson drops the dead. S: zset of ours, owner -> last sign of
 * life in ms (in the future: not listening yet). Ours that gave no sign for
 * 3 s is dead, whatever D says; not in S is Redisson's, and D counts.
 */
#define FAIR                                                                   \
    "local function drop(w) "                                                  \
    "redis.call('lpop',Q) redis.call('zrem',D,w) redis.call('zrem',S,w) "      \
    "end\n"                                                                    \
    "local function head() "                                                   \
    "while true do "                                                           \
    "local w=redis.call('lindex',Q,0) "                                        \
    "if not w then return end "                                                \
    "if not ms then local t=redis.call('time') "                               \
    "ms=t[1]*1000+math.floor(t[2]/1000) end "                                  \
    "local s=tonumber(redis.call('zscore',S,w)) "                              \
    "if w==ARGV[1] or s and s+3000>ms then return w,s end "                    \
    "if not s then local d=tonumber(redis.call('zscore',D,w)) "                \
    "if d and d>ms then return w end end "                                     \
    "drop(w) end end\n"                                                        \
    "local function wake() "                                                   \
    "while true do "                                                           \
    "local w,s=head() "                                                        \
    "if not w then return end "                                                \
    "if not s then redis.call('publish',CH..':'..w,'0') return end "           \
    "if redis.call('publish'," LISTENING ",'1'..KEYS[1])>0 or s>ms "           \
    "then return s end "                                                       \
    "drop(w) end end\n"

/* Is somebody of Redisson's in the queue? Then deadlines are kept as it does:
 * each waits behind the one before, and who goes or leaves lowers those
 * behind by his own wait. */
#define FOREIGN "redis.call('llen',Q)>redis.call('zcard',S)"
#define WAIT "300000"

#define LEAVE_QUEUE                                                            \
    "if redis.call('zrem',D,ARGV[1])==1 then "                                 \
    "if " FOREIGN " then local behind=false "                                  \
    "for _,w in ipairs(redis.call('lrange',Q,0,-1)) do "                       \
    "if behind then redis.call('zincrby',D,-" WAIT ",w) end "                  \
    "behind=behind or w==ARGV[1] end end "                                     \
    "redis.call('lrem',Q,1,ARGV[1]) end "                                      \
    "redis.call('zrem',S,ARGV[1])\n"

/* The lock is somebody's: a read-write lock's, ours (an answer was lost), or
 * it is to be waited for. ARGV[6]: 0 a try, 1 may queue, 2 so, and not for the
 * first time. */
#define HELD(leave)                                                            \
    "local f=redis.call('hmget',KEYS[1],ARGV[1],'mode') "                      \
    "if f[2] then if ARGV[6]=='2' then " leave " end return {6,now} end "      \
    "if f[1] then return again() end "

/*
 * TAKE (unfair)  KEYS lock info waiters token
 * TAKE_FAIR      KEYS lock info token queue timeout seen
 * TAKE_S         KEYS lock info waiters token
 *                ARGV owner lease valid_until_us token_expiry about queue
 *                     [fair: channel, listening 0|1]
 *   see enum rd_take
 * DROP           KEYS lock info waiters            ARGV owner channel mark
 * DROP_FAIR      KEYS lock info queue timeout seen ARGV owner channel
 * DROP_S         KEYS lock info waiters            ARGV owner
 *   1: was ours, is free. 0: was not.
 * LEAVE...       as DROP: out of the queue, and free if it was ours. If it is
 *                free and we were told, the next is told instead.
 * RENEW, RENEW_S KEYS lock info ...  ARGV uuid: hold_id lease ...
 *   one character for each lock, 1: ours
 */
#define TAKE_FAIR_QUEUE                                                        \
    "local d=tonumber(redis.call('zscore',D,ARGV[1])) "                        \
    "if not d and ARGV[6]=='2' then redis.call('zrem',S,ARGV[1]) end "         \
    "local q=redis.call('llen',Q) "                                            \
    "local foreign=q>redis.call('zcard',S) "                                   \
    "local ttl=redis.call('pttl',KEYS[1]) "                                    \
    "local till=ms+math.max(ttl,0) "                                           \
    "local first=q==0 "                                                        \
    "if not d then "                                                           \
    "if foreign then "                                                         \
    "local l=redis.call('zscore',D,redis.call('lindex',Q,-1)) "                \
    "d=math.max(tonumber(l) or 0,till)+" WAIT " "                              \
    "else d=till+" WAIT "*(q+1) end "                                          \
    "redis.call('zadd',D,d,ARGV[1]) redis.call('rpush',Q,ARGV[1]) "            \
    "else first=redis.call('lindex',Q,0)==ARGV[1] "                            \
    "if d<ms+" WAIT " then redis.call('zadd',D,ms+" WAIT ",ARGV[1]) end end "  \
    "redis.call('zadd',S,ARGV[8]=='1' and ms or ms+2000,ARGV[1]) "             \
    "if q==0 or ARGV[6]=='2' then "                                            \
    "local keep=foreign and 86400000 or 600000 "                               \
    "redis.call('pexpire',Q,keep) redis.call('pexpire',D,keep) "               \
    "redis.call('pexpire',S,keep) end "                                        \
    "if not first then ttl=-1 end "                                            \
    "if passed then ttl=passed end "                                           \
    "local strange=foreign or redis.call('exists',KEYS[2])==0 "                \
    "return {3,now,ttl,strange and 1 or 0}"

#define RENEW(check)                                                           \
    "local r={} "                                                              \
    "for i=1,#KEYS,2 do "                                                      \
    "local owner,ms=ARGV[1]..ARGV[i+1],ARGV[i+2] "                             \
    "if " check " then "                                                       \
    "redis.call('pexpire',KEYS[i],ms) redis.call('pexpire',KEYS[i+1],ms) "     \
    "r[#r+1]='1' else r[#r+1]='0' end end "                                    \
    "return table.concat(r)"

/*
 * INSPECT   KEYS lock info waiters token queue; at most 1000 waiters
 *   {kind 0|1|2, owner, pttl, token, info, queue, waiters}; kind 2: of another
 *   kind
 * LIST      ARGV cursor pattern count: {next cursor, names ...}
 * BREAK     KEYS lock info waiters queue timeout seen  ARGV "" channel mark
 *   1: was held. 0: was not. 6: of another kind.
 */
#define SEEN_BY                                                                \
    "redis.call('pttl',KEYS[1]),redis.call('get',KEYS[4]),"                    \
    "redis.call('get',KEYS[2])"

const char *const hf__rd_script[RD_SCRIPTS] = {
    [RD_TAKE] = CLOCK "local W,TOKEN=KEYS[3],KEYS[4]\n" GRANT(
        "u",
        INTO_HASH) "if redis.call('hlen',KEYS[1])==0 then "
                   "if ARGV[6]=='2' then redis.call('zrem',W,ARGV[1]) end "
                   "return grant() end\n" HELD(
                       "redis.call('zrem',W,ARGV[1])") "if ARGV[6]=='0' then "
                                                       "return {4,now} "
                                                       "end " ENLIST "return "
                                                       "{3,now,redis.call('"
                                                       "pttl',KEYS[1]),1-redis."
                                                       "call('exists',KEYS[2])"
                                                       "}",

    [RD_DROP] = "local W,CH,MARK=KEYS[3],ARGV[2],ARGV[3]\n" WAKE
                "if redis.call('hdel',KEYS[1],ARGV[1])==0 then return 0 end "
                "redis.call('del',KEYS[2]) wake() return 1",

    [RD_LEAVE] = "local W,CH,MARK=KEYS[3],ARGV[2],ARGV[3]\n" WAKE
                 "redis.call('zrem',W,ARGV[1]) "
                 "if redis.call('hdel',KEYS[1],ARGV[1])==1 then "
                 "redis.call('del',KEYS[2]) wake() return 1 end "
                 "if redis.call('exists',KEYS[1])==0 then wake() end return 0",

    [RD_TAKE_FAIR] = CLOCK
    "local TOKEN,Q,D,S,CH=KEYS[3],KEYS[4],KEYS[5],KEYS[6],ARGV[7] "
    "local ms=math.floor(now/1000) local passed\n" GRANT("f", INTO_HASH) FAIR
    "if redis.call('hlen',KEYS[1])==0 then "
    "local w=head() "
    "if not w or w==ARGV[1] then "
    "if w then drop(w) "
    "if " FOREIGN " then for _,o in ipairs(redis.call('zrange',D,0,-1)) do "
    "redis.call('zincrby',D,-" WAIT ",o) end end "
    "elseif ARGV[6]=='2' then redis.call('zrem',S,ARGV[1]) end "
    "return grant() end "
    "if ARGV[6]~='0' then local s=wake() passed=s and s+3000-ms end "
    "else " HELD(LEAVE_QUEUE) "end "
                              "if ARGV[6]=='0' then return {4,now} "
                              "end\n" TAKE_FAIR_QUEUE,

    [RD_DROP_FAIR] =
        "local Q,D,S,CH=KEYS[3],KEYS[4],KEYS[5],ARGV[2] local ms\n" FAIR
        "if redis.call('hdel',KEYS[1],ARGV[1])==0 then return 0 end "
        "redis.call('del',KEYS[2]) wake() return 1",

    [RD_LEAVE_FAIR] =
        "local Q,D,S,CH=KEYS[3],KEYS[4],KEYS[5],ARGV[2] local ms\n" FAIR
            LEAVE_QUEUE "if redis.call('hdel',KEYS[1],ARGV[1])==1 then "
        "redis.call('del',KEYS[2]) wake() return 1 end "
        "if redis.call('exists',KEYS[1])==0 then wake() end return 0",

    [RD_RENEW] = RENEW("redis.pcall('hexists',KEYS[i],owner)==1"),

    [RD_INSPECT] = "local ty=redis.call('type',KEYS[1]).ok "
                   "local q=redis.call('lrange',KEYS[5],0,999) "
                   "local w=redis.call('zrange',KEYS[3],0,999) "
                   "local kind,owner=0,false "
                   "if ty=='hash' then "
                   "local f=redis.call('hkeys',KEYS[1]) owner=f[1] "
                   "kind=#f==1 and owner~='mode' and 1 or 2 "
                   "elseif ty~='none' then kind=2 end "
                   "return {kind,owner," SEEN_BY ",q,w}",

    [RD_LIST] =
        "local s=redis.call('scan',ARGV[1],'match',ARGV[2],'count',ARGV[3],"
        "'type','hash') local r={s[1]} "
        "for _,k in ipairs(s[2]) do "
        "if redis.pcall('hlen',k)==1 then "
        "local f=redis.call('hkeys',k)[1] "
        "if f and string.find(f,'^%x+%-%x+%-%x+%-%x+%-%x+:%d+$') "
        "then r[#r+1]=k end end end "
        "return r",

    [RD_BREAK] =
        "local W,CH,MARK=KEYS[3],ARGV[2],ARGV[3] "
        "local Q,D,S=KEYS[4],KEYS[5],KEYS[6] local ms\n" WAKE
        "local wake_unfair=wake\n" FAIR
        "if redis.call('hlen',KEYS[1])==0 then return 0 end "
        "if redis.call('hexists',KEYS[1],'mode')==1 then return 6 end "
        "redis.call('del',KEYS[1],KEYS[2]) wake_unfair() wake() return 1",

    [RD_TAKE_S] = CLOCK "local W,TOKEN=KEYS[3],KEYS[4]\n" GRANT(
        "u",
        "redis.call('set',KEYS[1],ARGV[1],'px',ARGV[2]) ") "local "
                                                           "f=redis.call('get',"
                                                           "KEYS[1]) "
                                                           "if not f then "
                                                           "if ARGV[6]=='2' "
                                                           "then "
                                                           "redis.call('zrem',"
                                                           "W,ARGV[1]) end "
                                                           "return grant() "
                                                           "end\n"
                                                           "if f==ARGV[1] then "
                                                           "return again() end "
                                                           "if ARGV[6]=='0' "
                                                           "then return "
                                                           "{4,now} end " ENLIST
                                                           "return "
                                                           "{3,now,redis.call('"
                                                           "pttl',KEYS[1]),1-"
                                                           "redis.call('exists'"
                                                           ",KEYS[2])}",

    [RD_DROP_S] = "local W=KEYS[3]\n" WAKE_S
                  "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end "
                  "redis.call('del',KEYS[1],KEYS[2]) wake() return 1",

    [RD_LEAVE_S] = "local W=KEYS[3]\n" WAKE_S "redis.call('zrem',W,ARGV[1]) "
                   "local f=redis.call('get',KEYS[1]) "
                   "if f==ARGV[1] then redis.call('del',KEYS[1],KEYS[2]) "
                   "wake() return 1 end "
                   "if not f then wake() end return 0",

    [RD_RENEW_S] = RENEW("redis.pcall('get',KEYS[i])==owner"),

    [RD_INSPECT_S] =
        "local ty=redis.call('type',KEYS[1]).ok "
        "local w=redis.call('zrange',KEYS[3],0,999) "
        "local kind,owner=0,false "
        "if ty=='string' then kind,owner=1,redis.call('get',KEYS[1]) "
        "elseif ty~='none' then kind=2 end "
        "return {kind,owner," SEEN_BY ",{},w}",

    /* Of the strings of others nobody knows which are locks: ours alone. */
    [RD_LIST_S] =
        "local s=redis.call('scan',ARGV[1],'match',ARGV[2],'count',ARGV[3],"
        "'type','string') local r={s[1]} "
        "for _,k in ipairs(s[2]) do r[#r+1]=k end "
        "return r",

    [RD_BREAK_S] =
        "local W=KEYS[3]\n" WAKE_S "local f=redis.call('get',KEYS[1]) "
        "if not f then return 0 end "
        "redis.call('del',KEYS[1],KEYS[2]) wake() return 1",
};
