/*
 * What the server does for us, one Lua text per verb. Rules:
 * - Idempotent by owner ("<uuid>:<hold id>"): asked again, each says the same.
 * - The server's clock alone. A question carries the time until which it is
 *   meant, so that one that was stuck in a dead connection grants nothing.
 * - The lock's key comes last when granting: what is written before it has an
 *   expiry and harms nobody if the rest fails.
 * - A server without memory refuses what may need some as the first write of a
 *   script, and nothing after it. What renews or lets go begins with a write
 *   that needs none.
 * - Wrong types are not looked for: the command that stumbles on one answers
 *   WRONGTYPE, which error.c knows.
 * - KEYS and ARGV are bound, nothing is pasted in. The first keys are always
 *   the lock and the holder's information.
 *
 * Waking: every client of ours listens to one channel of its own,
 * "holdfast:wake:{prefix}:<uuid>". A message there is
 *   u<hold id> 0 0 <name>             unfair: it was let go, try
 *   f<hold id> 0 0 <name>             fair: the same
 *   u<hold id> <token> <seen> <name>  unfair: it is yours already
 *   f<hold id> <token> <seen> <name>  fair: the same
 * with r and s instead of u and f for a read-write lock and a semaphore.
 * and p<number> (pair.c).
 * PUBLISH tells how many heard it, so that the dead are passed over at once.
 * "Yours already" saves a round trip of each hand-over: the lock goes over in
 * the script of the release, and the message is the answer to the question by
 * which its new holder came into the queue, or last looked; seen says which,
 * the time, in ms, of that question's answer. Its lease counts from there, here
 * too: if it has died since it keeps it no longer than if it had held it then.
 * It is said only where somebody listens at this server (LISTENERS): a replica
 * passes on what is said, true or not.
 *
 *   TAKE       KEYS lock info waiters token crowd
 *   TAKE_FAIR  KEYS lock info token queue timeout seen
 *   TAKE_S     as TAKE
 *              ARGV owner lease_ms valid_until_us token_ttl_ms about queue
 *                   hand_ms [fair: channel listening]
 *     valid_until_us 0: always. token_ttl_ms 0: for ever. about: "length of the
 *     prefix[k] pid\nhost\nlabel", k: token_ttl_ms is 0. queue: 0 a try, 1
 *     may queue, 2 so, and not for the first time. listening: 0 or 1. hand_ms:
 *     the lease with which it may be handed to us, 0: we have to ask.
 *     Answers: enum rd_take.
 *   DROP, DROP_FAIR  KEYS lock info waiters token crowd queue timeout seen
 *                    ARGV owner channel mark
 *   DROP_S     KEYS lock info waiters token crowd  ARGV owner
 *     1: it was ours, and is free. 0: it was not. Its own kind of waiters
 * first, the other kind if there are none. LEAVE...   as DROP, for one who may
 * be in the queue or hold it. If it is free, and we may have been told so, the
 * next is told instead. RENEW...   KEYS lock info ...  ARGV "uuid:" hold_id
 * lease_ms ... one character for each lock, 1: ours, 0: not INSPECT... KEYS
 * lock info waiters token crowd queue seen {kind, owner, pttl, token, info,
 * queue, crowd}; kind 0: free, 1: held, more: of another kind, and which. Each
 * waiter is two texts: the owner, and what seen or crowd have of it. At most
 * 1000. LIST... ARGV cursor pattern count {next cursor, keys ...} BREAK      as
 * DROP, without an owner 1: was held. 0: was not. More: of another kind, and
 * which.
 */
#include "redis.h"
#include "scripts_fair.h"
#include "scripts_latch.h"
#include "scripts_line.h"
#include "scripts_rw.h"
#include "scripts_semaphore.h"

/* clang-format off */

#define OTHER_RW RD_TEXT(RD_OTHER) "+2" /* HF_RWLOCK */
#define OTHER_STRING RD_TEXT(RD_OTHER) "+3" /* HF_SEMAPHORE, or HF_LATCH */

/* now: microseconds */
#define CLOCK                                                                  \
    "local t=redis.call('time')\n"                                             \
    "local now=t[1]*1000000+t[2]\n"                                            \
    "if ARGV[3]~='0' and now>tonumber(ARGV[3]) then return {5,now} end\n"

/*
 * Puts a higher token than any before into n: one more than the counter, at
 * least the time, so that a lost counter does not matter. COUNT_ON writes it.
 * The counter outlives the last grant by so long (keep); one without an end is
 * Redisson's, and stays so. Since it tells the time of the last grant, that has
 * to be looked after in the first of each half day alone. GIVE writes it, who
 * holds the lock, and the lock. Pieces, not functions: making a function costs
 * the server as much as calling a command.
 */
#define MINT                                                                   \
    "local last=tonumber(redis.call('get',TOKEN)) or 0\n"                      \
    "local n=last<now and now or last+1\n"
#define COUNT_ON(keep)                                                         \
    "local keep=" keep "\n"                                                    \
    "if keep=='0' then\n"                                                      \
    "  redis.call('set',TOKEN,string.format('%.0f',n))\n"                      \
    "elseif last<now and last>=now-now%43200000000 and keep+0<=86400000 or\n"  \
    "  last>0 and redis.call('pttl',TOKEN)==-1 then\n"                         \
    "  redis.call('set',TOKEN,string.format('%.0f',n),'keepttl')\n"            \
    "else\n"                                                                   \
    "  redis.call('set',TOKEN,string.format('%.0f',n),'px',keep+43200000)\n"   \
    "end\n"
#define GIVE(kind, lock, owner, ms, about, keep)                               \
    COUNT_ON(keep)                                                             \
    "redis.call('set',KEYS[2]," owner "..'\\n" kind "\\n'..\n"                  \
    "  string.format('%.0f',math.floor(now/1000))..'\\n'.." about ",\n"        \
    "  'px'," ms ")\n"                                                         \
    lock(owner, ms)
#define HASH(owner, ms)                                                        \
    "redis.call('hset',KEYS[1]," owner ",1)\n"                                 \
    "redis.call('pexpire',KEYS[1]," ms ")\n"
#define STRING(owner, ms)                                                      \
    "redis.call('set',KEYS[1]," owner ",'px'," ms ")\n"

/* To us; to another one, w, with what it said of itself. */
#define GRANT(kind, lock)                                                      \
    MINT GIVE(kind, lock, "ARGV[1]", "ARGV[2]", "ARGV[5]", "ARGV[4]")          \
    "return {2,now,n}\n"
#define GIVE_TO_W(kind, lock)                                                  \
    GIVE(kind, lock, "w", LEFT_OF_HAND, "about", KEEP_OF_HAND)

/* We hold it already: an answer was lost. */
#define AGAIN                                                                  \
    "if redis.call('pttl',KEYS[1])<tonumber(ARGV[2]) then\n"                   \
    "  redis.call('pexpire',KEYS[1],ARGV[2])\n"                                \
    "  redis.call('pexpire',KEYS[2],ARGV[2])\n"                                \
    "end\n"                                                                    \
    "local has=tonumber(redis.call('get',TOKEN))\n"                            \
    "if has then return {2,now,has} end\n"

/*
 * Unfair. W: list of waiters. C: hash of them, owner -> "until seen hand_ms about";
 * who is in W and not in C has left. The longest waiting one that listens gets
 * it, or is told, alone; it is out of both then, and comes back if somebody was
 * faster. It gets it only if it has shown life just now: one that looks rarely
 * may be stopped, and is told. One that is late with its look is told too, and
 * the next beside it.
 *
 * Redisson's waiters all listen to CH. So do ours, to hear Redisson: they
 * listen to MARK as well, in the same command, so that more ears on CH than on
 * MARK are Redisson's. Then nothing is handed over, and all of them may try.
 * "00" is 0 to Redisson, and tells ours that one of them has been told already.
 * Where the server forbids PUBSUB, we do as if Redisson was there.
 */
#define NEXT(lock)                                                             \
    "while true do\n"                                                          \
    "  local w=redis.call('lpop',W)\n"                                         \
    "  if not w then break end\n"                                              \
    "  local s=redis.call('hget',C,w)\n"                                       \
    "  if s then\n"                                                            \
    "    redis.call('hdel',C,w)\n"                                             \
    "    local til,seen,hand,about=string.match(s,\n"                          \
    "      '^(%d+) (%d+) (%d+) (.*)')\n"                                       \
    "    local to=" WAKE_CHANNEL "\n"                                          \
    "    local t=redis.call('time')\n"                                         \
    "    local now=t[1]*1000000+t[2]\n"                                        \
    "    if shared or hand=='0' or " NOT_SEEN_LATELY " then\n"                 \
    "      told=" SAY("to", "'u'..string.sub(w,38)..' 0 0 '..KEYS[1]") ">0\n"  \
    "        and til*1000>now\n"                                               \
    "    else\n"                                                               \
    MINT                                                                       \
    "      told=" LISTENERS("to") ">0 and " SAY("to", "'u'..\n"                \
    "        string.sub(w,38)..string.format(' %.0f ',n)..seen..' '..KEYS[1]")  \
    ">0\n"                                                                     \
    "      given=told\n"                                                       \
    "      if given then\n"                                                    \
    GIVE_TO_W("u", lock)                                                       \
    "      end\n"                                                              \
    "    end\n"                                                                \
    "    if told then break end\n"                                             \
    "  end\n"                                                                  \
    "end\n"

#define WAKE                                                                   \
    "local told,shared\n"                                                      \
    "if redis.call('exists',W)==1 then\n"                                      \
    "  local s=redis.pcall('pubsub','numsub',CH,MARK)\n"                       \
    "  shared=s.err or s[2]>s[4]\n"                                            \
    NEXT(HASH)                                                                 \
    "end\n"                                                                    \
    "if shared or not told then\n"                                             \
    "  redis.call('publish',CH,told and '00' or '0')\n"                        \
    "end\n"
/* Who else looks for a string is not known: if ours handed it over among
 * themselves, others would never find it free. */
#define WAKE_S                                                                 \
    "local told,given,shared=nil,nil,true\n"                                   \
    NEXT(STRING)

/* The lock is free: who is to know of it. */
#define NEXT_UNFAIR                                                            \
    "if redis.call('exists',W,Q)==0 then\n"                                    \
    "  redis.call('publish',CH,'0')\n"                                         \
    "else\n"                                                                   \
    WAKE                                                                       \
    "  if not told then\n"                                                     \
    FAIR LOWER TELL HAND_OVER                                                  \
    "  end\n"                                                                  \
    "end\n"
#define NEXT_FAIR                                                              \
    "if redis.call('exists',W,Q)>0 then\n"                                     \
    FAIR LOWER TELL HAND_OVER                                                  \
    "  if not given and redis.call('exists',Q)==0 then\n"                      \
    WAKE                                                                       \
    "  end\n"                                                                  \
    "else\n"                                                                   \
    "  redis.call('publish',CH,'0')\n"                                         \
    "end\n"

/* What DROP and LEAVE begin with. */
#define ENDS_S "local W,TOKEN,C=KEYS[3],KEYS[4],KEYS[5]\n"
#define ENDS                                                                   \
    ENDS_S                                                                     \
    "local Q,D,S,CH,MARK=KEYS[6],KEYS[7],KEYS[8],ARGV[2],ARGV[3]\n"            \
    "local now,given\n"

/* near: the place of one of the first, LAST of one of the last, nil of those
 * between. Of q who wait: until when, in ms, it looks again if it lives, and the
 * time now. The client's side of this is look_at() in verbs.c. */
#define LAST "9"
#define IS_FIRST "(near or " LAST ")<" LAST
#define ALIVE_UNTIL                                                            \
    "local ms=math.floor(now/1000)\n"                                          \
    "local alive=string.format('%.0f %.0f ',ms+" RD_TEXT(RD_LATE_MS)           \
    "+(near and " RD_TEXT(RD_LOOK_MS) " or math.min(math.max(q*"               \
    RD_TEXT(RD_LOOK_EACH_MS) "," RD_TEXT(RD_LOOK_MS) "),"                      \
    RD_TEXT(RD_LOOK_MAX_MS) ")),ms)\n"
/* Of ARGV[1], which is the q-th of a list now, or is there already. */
#define NEAR_NEW "near=q<=" RD_TEXT(RD_LOOK_FIRST) " and q or " LAST "\n"
#define NEAR(list)                                                             \
    "for i,w in ipairs(redis.call('lrange'," list ",0,"                        \
    RD_TEXT(RD_LOOK_FIRST) "-1)) do near=near or w==ARGV[1] and i end\n"       \
    "for _,w in ipairs(near and {} or redis.call('lrange'," list ",-"          \
    RD_TEXT(RD_LOOK_LAST) ",-1)) do near=near or w==ARGV[1] and " LAST " end\n"
/* In the answer. */
#define NEARNESS "near and (" IS_FIRST " and 1 or 2) or 0"

/* Comes into the list, if not there. It outlives its last visitor by a minute.
 * A holder without our information is not one of us. */
#define ENLIST                                                                 \
    "if ARGV[6]=='0' then return {4,now} end\n"                                \
    "local q,near\n"                                                           \
    "if ARGV[6]=='1' or redis.call('hexists',C,ARGV[1])==0 then\n"             \
    "  q=redis.call('rpush',W,ARGV[1])\n"                                      \
    NEAR_NEW                                                                   \
    "else\n"                                                                   \
    "  q=redis.call('llen',W)\n"                                               \
    NEAR("W")                                                                  \
    "end\n"                                                                    \
    ALIVE_UNTIL                                                                \
    "redis.call('hset',C,ARGV[1],alive..ARGV[7]..' '..ARGV[5])\n"              \
    "if q==1 or ARGV[6]=='2' then\n"                                           \
    "  redis.call('pexpire',W," RD_TEXT(RD_KEEP_MS) ")\n"                      \
    "  redis.call('pexpire',C," RD_TEXT(RD_KEEP_MS) ")\n"                      \
    "end\n"                                                                    \
    "return {3,now,redis.call('pttl',KEYS[1]),\n"                              \
    "  1-redis.call('exists',KEYS[2]),q," NEARNESS "}"
#define DELIST                                                                 \
    "if redis.call('hdel',C,ARGV[1])==1 then redis.call('lrem',W,1,ARGV[1]) end\n"

/* What the lock's key says to a command, in has. If that stumbles we do not wait
 * for it any more, before it does again. */
#define ASK(command, leave)                                                    \
    "local has=redis.pcall(" command ")\n"                                     \
    "if type(has)=='table' and has.err then\n"                                 \
    "  if ARGV[6]=='2' then\n"                                                 \
    leave                                                                      \
    "  end\n"                                                                  \
    "  has=redis.call(" command ")\n"                                          \
    "end\n"

/* The hash is there: a read-write lock, ours, or somebody else's. */
#define HELD(kind, leave)                                                      \
    "local f=redis.call('hmget',KEYS[1],ARGV[1],'mode')\n"                     \
    "if f[2] then\n"                                                           \
    "  if ARGV[6]=='2' then\n"                                                 \
    leave                                                                      \
    "  end\n"                                                                  \
    "  return {6,now}\n"                                                       \
    "end\n"                                                                    \
    "if f[1] then\n"                                                           \
    AGAIN                                                                      \
    GRANT(kind, HASH)                                                          \
    "end\n"

#define RENEW(is_ours)                                                         \
    "local r={}\n"                                                             \
    "for i=1,#KEYS,2 do\n"                                                     \
    "  local owner,ms=ARGV[1]..ARGV[i+1],ARGV[i+2]\n"                          \
    "  if " is_ours " then\n"                                                  \
    "    if redis.call('pttl',KEYS[i])<tonumber(ms) then\n"                    \
    "      redis.call('pexpire',KEYS[i],ms)\n"                                 \
    "      redis.call('pexpire',KEYS[i+1],ms) end\n"                           \
    "    r[#r+1]='1'\n"                                                        \
    "  else\n"                                                                 \
    "    r[#r+1]='0'\n"                                                        \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return table.concat(r)"

#define INSPECTED(queue)                                                       \
    "local function two(list,hash)\n"                                          \
    "  local r={}\n"                                                           \
    "  for _,w in ipairs(redis.call('lrange',list,0,999)) do\n"                \
    "    r[#r+1]=w\n"                                                          \
    "    r[#r+1]=redis.call('hget',hash,w) or ''\n"                            \
    "  end\n"                                                                  \
    "  return r\n"                                                             \
    "end\n"                                                                    \
    "return {kind,owner,redis.call('pttl',KEYS[1]),redis.call('get',KEYS[4]),\n" \
    "  redis.call('get',KEYS[2])," queue ",two(KEYS[3],KEYS[5])}"

const char *const hf__rd_script[RD_SCRIPTS] = {
    [RD_TAKE] =
    CLOCK
    "local W,TOKEN,C=KEYS[3],KEYS[4],KEYS[5]\n"
    ASK("'hlen',KEYS[1]", DELIST)
    "if has==0 then\n"
    "  if ARGV[6]=='2' then\n"
    DELIST
    "  end\n"
    GRANT("u", HASH)
    "end\n"
    HELD("u", DELIST)
    ENLIST,

    [RD_DROP] =
    ENDS
    "if redis.call('hdel',KEYS[1],ARGV[1])==0 then return 0 end\n"
    NEXT_UNFAIR
    "if not given then redis.call('del',KEYS[2]) end\n"
    "return 1",

    [RD_LEAVE] =
    ENDS
    DELIST
    "local ours=redis.call('hdel',KEYS[1],ARGV[1])\n"
    "if ours==1 then redis.call('del',KEYS[2]) end\n"
    "if redis.call('exists',KEYS[1])==0 then\n"
    NEXT_UNFAIR
    "end\n"
    "return ours",

    [RD_TAKE_FAIR] =
    CLOCK
    "local TOKEN,Q,D,S,CH=KEYS[3],KEYS[4],KEYS[5],KEYS[6],ARGV[8]\n"
    ASK("'hlen',KEYS[1]", LEAVE_QUEUE)
    "local held,passed=has>0\n"
    "if not held and ARGV[6]~='2' and redis.call('exists',Q)==0 then\n"
    GRANT("f", HASH)
    "end\n"
    FAIR LOWER TELL
    "if held then\n"
    HELD("f", LEAVE_QUEUE)
    "else\n"
    "  local w=head()\n"
    /* Not ours to take. Was the one told whose turn it is? */
    "  if ARGV[6]=='2' and w and w~=ARGV[1] then\n"
    "    local til=tell()\n"
    "    passed=til and til-math.floor(now/1000)\n"
    "    w=redis.call('lindex',Q,0)\n"
    "  end\n"
    "  if not w or w==ARGV[1] then\n"
    "    if w then\n"
    "      drop(w)\n"
    "      lower()\n"
    "    else\n"
    "      redis.call('hdel',S,ARGV[1])\n"
    "    end\n"
    GRANT("f", HASH)
    "  end\n"
    "end\n"
    "if ARGV[6]=='0' then return {4,now} end\n"
    TAKE_FAIR_QUEUE,

    [RD_DROP_FAIR] =
    ENDS
    "if redis.call('hdel',KEYS[1],ARGV[1])==0 then return 0 end\n"
    NEXT_FAIR
    "if not given then redis.call('del',KEYS[2]) end\n"
    "return 1",

    [RD_LEAVE_FAIR] =
    ENDS
    LEAVE_QUEUE
    "local ours=redis.call('hdel',KEYS[1],ARGV[1])\n"
    "if ours==1 then redis.call('del',KEYS[2]) end\n"
    "if redis.call('exists',KEYS[1])==0 then\n"
    NEXT_FAIR
    "end\n"
    "return ours",

    [RD_RENEW] =
    RENEW("redis.pcall('hexists',KEYS[i],owner)==1"),

    [RD_INSPECT] =
    "local kind,owner,ty=0,false,redis.call('type',KEYS[1]).ok\n"
    "if ty=='hash' then\n"
    "  if redis.call('hexists',KEYS[1],'mode')==1 then\n"
    "    kind=" OTHER_RW "\n"
    "  else\n"
    "    local f=redis.call('hkeys',KEYS[1])\n"
    "    owner=f[1]\n"
    "    kind=#f==1 and 1 or " RD_TEXT(RD_OTHER) "\n"
    "  end\n"
    "elseif ty~='none' then\n"
    "  kind=ty=='string' and " OTHER_STRING " or " RD_TEXT(RD_OTHER) "\n"
    "end\n"
    INSPECTED("two(KEYS[6],KEYS[7])"),

    /* Of the strings those that ours or an RPermitExpirableSemaphore use. */
    [RD_LIST] =
    "local s=redis.call('scan',ARGV[1],'match',ARGV[2],'count',ARGV[3])\n"
    "local r={s[1]}\n"
    "for _,k in ipairs(s[2]) do\n"
    "  local ty,is=redis.call('type',k).ok\n"
    "  if ty=='hash' then\n"
    "    local f=redis.call('hlen',k)==1 and redis.call('hkeys',k)[1]\n"
    "    is=f and string.find(f,'^%x+%-%x+%-%x+%-%x+%-%x+:%d+$') or\n"
    "      redis.call('hexists',k,'mode')==1\n"
    "  elseif ty=='string' then\n"
    "    local own=string.find(k,'{',1,true)\n"
    "    is=redis.call('exists','holdfast:kind:'..(own and ':'..k or\n"
    "      '{'..k..'}'),own and k..':timeout' or '{'..k..'}:timeout')>0 or\n"
    "      " IS_LATCH("k") "\n"
    "  end\n"
    "  if is then r[#r+1]=k end\n"
    "end\n"
    "return r",

    [RD_BREAK] =
    ENDS
    "local ty=redis.call('type',KEYS[1]).ok\n"
    "if ty=='none' then return 0 end\n"
    "if ty=='string' then return " OTHER_STRING " end\n"
    "if ty~='hash' then return " RD_TEXT(RD_OTHER) " end\n"
    "if redis.call('hexists',KEYS[1],'mode')==1 then return " OTHER_RW " end\n"
    "redis.call('del',KEYS[1],KEYS[2])\n"
    NEXT_UNFAIR
    "return 1",

    SCRIPTS_RW,
    SCRIPTS_SEMAPHORE,
    SCRIPTS_LATCH,

    /* ARGV channel text: how many listen here, if the server says it. */
    [RD_PROVE] =
    "local n=redis.call('publish',ARGV[1],ARGV[2])\n"
    "local s=redis.pcall('pubsub','numsub',ARGV[1])\n"
    "return s.err and n or s[2]",

    [RD_TAKE_S] =
    CLOCK
    "local W,TOKEN,C=KEYS[3],KEYS[4],KEYS[5]\n"
    ASK("'get',KEYS[1]", DELIST)
    "local f=has\n"
    "if f==ARGV[1] then\n"
    AGAIN
    "  f=nil\n"
    "end\n"
    "if not f then\n"
    "  if ARGV[6]=='2' then\n"
    DELIST
    "  end\n"
    GRANT("u", STRING)
    "end\n"
    ENLIST,

    [RD_DROP_S] =
    ENDS_S
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end\n"
    "redis.call('del',KEYS[1],KEYS[2])\n"
    WAKE_S
    "return 1",

    [RD_LEAVE_S] =
    ENDS_S
    DELIST
    "local f=redis.call('get',KEYS[1])\n"
    "if f==ARGV[1] then redis.call('del',KEYS[1],KEYS[2]) end\n"
    "if not f or f==ARGV[1] then\n"
    WAKE_S
    "end\n"
    "return f==ARGV[1] and 1 or 0",

    [RD_RENEW_S] =
    RENEW("redis.pcall('get',KEYS[i])==owner"),

    [RD_INSPECT_S] =
    "local kind,owner,ty=0,false,redis.call('type',KEYS[1]).ok\n"
    "if ty=='string' then\n"
    "  kind,owner=1,redis.call('get',KEYS[1])\n"
    "elseif ty~='none' then\n"
    "  kind=" RD_TEXT(RD_OTHER) "\n"
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
    ENDS_S
    "if not redis.call('get',KEYS[1]) then return 0 end\n"
    "redis.call('del',KEYS[1],KEYS[2])\n"
    WAKE_S
    "return 1",
};
/* clang-format on */
