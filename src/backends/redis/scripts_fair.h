/*
 * The fair half of scripts.c, in Redisson's layout: pieces of Lua that are put
 * together there. MINT, HASH, GIVE_TO_W, NEAR and ALIVE_UNTIL
 * come from there.
 */
#ifndef HF_REDIS_SCRIPTS_FAIR_H
#define HF_REDIS_SCRIPTS_FAIR_H

/* clang-format off */

/* Of the owner w: where its client listens. Its about begins with the length of
 * its prefix. */
#define WAKE_CHANNEL                                                           \
    "'holdfast:wake:{'..string.sub(KEYS[1],1,\n"                               \
    "      string.match(about,'^%d+') or 0)..'}:'..string.sub(w,1,36)"
/* How many of this server's own connections listen there. What is published is
 * passed on to its replicas, and those who listen at one of them do not count. */
#define LISTENERS(to) "redis.call('pubsub','numsub'," to ")[2]"
/* How many heard it; -1, if the server does not let us say it: a waiter with
 * another prefix may have a channel that is none of ours. It may be alive, and
 * in a fair queue it keeps its place and looks by itself. */
#define SAY(to, text) "(tonumber(redis.pcall('publish'," to "," text ")) or -1)"

/*
 * Q: list of owners. D: zset, owner -> deadline in
 * ms, by which Redisson drops the dead. S: hash of ours, owner -> "until seen
 * ear hand_ms about": until when, in ms, it counts as alive (it looks again
 * before that), when it looked last, whether it was listening, hand_ms and about of its TAKE. Not
 * in S is Redisson's, and D counts. head is the first that lives; for another
 * one of ours also what S has.
 */
#define FAIR                                                                   \
    "local function drop(w)\n"                                                 \
    "  redis.call('lpop',Q)\n"                                                 \
    "  redis.call('zrem',D,w)\n"                                               \
    "  redis.call('hdel',S,w)\n"                                               \
    "end\n"                                                                    \
    "local function head()\n"                                                  \
    "  while true do\n"                                                        \
    "    local w=redis.call('lindex',Q,0)\n"                                   \
    "    if not w or w==ARGV[1] then return w end\n"                           \
    "    if not now then\n"                                                    \
    "      local t=redis.call('time')\n"                                       \
    "      now=t[1]*1000000+t[2]\n"                                            \
    "    end\n"                                                                \
    "    local s=redis.call('hget',S,w)\n"                                     \
    "    if s then\n"                                                          \
    "      local til,seen,ear,hand,about=string.match(s,\n"                    \
    "        '^(%d+) (%d+) (%d) (%d+) (.*)')\n"                                \
    "      til=tonumber(til)\n"                                                \
    "      if til and til*1000>now then\n"                                     \
    "        return w,til,seen,ear,hand,about\n"                               \
    "      end\n"                                                              \
    "    else\n"                                                               \
    "      local d=tonumber(redis.call('zscore',D,w))\n"                       \
    "      if d and d*1000>now then return w end\n"                            \
    "    end\n"                                                                \
    "    drop(w)\n"                                                            \
    "  end\n"                                                                  \
    "end\n"

/*
 * Is somebody of Redisson's in the queue? Then deadlines are kept as it does:
 * each waits behind the one before, and who goes or leaves lowers those
 * behind by his own wait. Who came when ours was the first, whose deadline is
 * near, has not counted that wait, and is not lowered: the i-th behind has that
 * of those between, and time to come. And the keys stay, whoever of ours looks
 * or not.
 */
#define FOREIGN "redis.call('llen',Q)>redis.call('hlen',S)"
#define WAIT "300000"
#define STAY                                                                   \
    "redis.call('pexpire',Q,86400000)\n"                                       \
    "redis.call('pexpire',D,86400000)\n"
#define LOWER_THE(i)                                                           \
    "local d=tonumber(redis.call('zscore',D,w))\n"                             \
    "if d and d-" WAIT "*(" i ")>now/1000+" RD_TEXT(RD_ALIVE_MS) " then\n"     \
    "  redis.call('zincrby',D,-" WAIT ",w)\n"                                  \
    "end\n"
#define LOWER                                                                  \
    "local function lower()\n"                                                 \
    "  if not (" FOREIGN ") then return end\n"                                 \
    STAY                                                                       \
    "  for i,w in ipairs(redis.call('lrange',Q,0,-1)) do\n"                    \
    LOWER_THE("i")                                                             \
    "  end\n"                                                                  \
    "end\n"

/* Redisson drops a dead one of ours from Q and D, and knows nothing of S: there
 * it would hide one of Redisson's. */
#define TIDY                                                                   \
    "local ws,ours=redis.call('lrange',Q,0,99),true\n"                         \
    "for _,s in ipairs(#ws>0 and redis.call('hmget',S,unpack(ws)) or ws) do\n" \
    "  ours=ours and s\n"                                                      \
    "end\n"                                                                    \
    "for _,w in ipairs(ours and {} or redis.call('hkeys',S)) do\n"             \
    "  if not redis.call('zscore',D,w) then redis.call('hdel',S,w) end\n"      \
    "end\n"

#define LEAVE_QUEUE                                                            \
    TIDY                                                                       \
    "if redis.call('zrem',D,ARGV[1])==1 then\n"                                \
    "  if " FOREIGN " then\n"                                                  \
    STAY                                                                       \
    "    if not now then\n"                                                    \
    "      local t=redis.call('time')\n"                                       \
    "      now=t[1]*1000000+t[2]\n"                                            \
    "    end\n"                                                                \
    "    local behind=false\n"                                                 \
    "    for i,w in ipairs(redis.call('lrange',Q,0,-1)) do\n"                  \
    "      if behind then\n"                                                   \
    LOWER_THE("i-1")                                                           \
    "      end\n"                                                              \
    "      behind=behind or w==ARGV[1]\n"                                      \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "  redis.call('lrem',Q,1,ARGV[1])\n"                                       \
    "end\n"                                                                    \
    "redis.call('hdel',S,ARGV[1])\n"

/* One that looks rarely may be stopped, and nobody knows; and would not find what
 * it was given for long, if the message was lost. */
#define NOT_SEEN_LATELY                                                        \
    "(til-seen>" RD_TEXT(RD_ALIVE_MS) " or\n"                                  \
    "  seen+" RD_TEXT(RD_ALIVE_MS) "<now/1000)"

/* With the lease hand, handed over now: how long it is left, and how long a
 * token is kept: '0', for ever, if its about says so. */
#define LEFT_OF_HAND "math.min(hand,hand-math.floor(now/1000)+seen)"
#define KEEP_OF_HAND                                                           \
    "string.find(about,'^%d+k') and '0' or math.max(86400000,10*hand)"

/* The first is told; says until when it counts as alive, if it is ours: one
 * that looks rarely has to come now. One of Redisson's that does not listen has
 * just come and will ask again, or it is dead. */
#define TELL                                                                   \
    "local function tell()\n"                                                  \
    "  while true do\n"                                                        \
    "    local w,til,seen,ear,hand,about=head()\n"                             \
    "    if not w or w==ARGV[1] then return end\n"                             \
    "    if not til then\n"                                                    \
    "      local soon=math.floor(now/1000)+" RD_TEXT(RD_ALIVE_MS) "\n"         \
    "      if redis.call('publish',CH..':'..w,'0')==0 and\n"                   \
    "        tonumber(redis.call('zscore',D,w))>soon then\n"                   \
    "        redis.call('zadd',D,soon,w)\n"                                    \
    "      end\n"                                                              \
    "      return\n"                                                           \
    "    end\n"                                                                \
    "    if " SAY(WAKE_CHANNEL, "'f'..string.sub(w,38)..' 0 0 '..KEYS[1]") "\n"\
    "      ~=0 or ear=='0' then\n"                                             \
    "      local soon=math.floor(now/1000)+" RD_TEXT(RD_ALIVE_MS) "\n"         \
    "      if til>soon then\n"                                                 \
    "        til=soon\n"                                                       \
    "        redis.call('hset',S,w,string.format('%.0f ',til)..seen..' '..\n"  \
    "          ear..' '..hand..' '..about)\n"                                  \
    "      end\n"                                                              \
    "      return til\n"                                                       \
    "    end\n"                                                                \
    "    drop(w)\n"                                                            \
    "  end\n"                                                                  \
    "end\n"

/* The first gets it, if it is ours, listens, and has shown life just now; given
 * says so. */
#define HAND_OVER                                                              \
    "while true do\n"                                                          \
    "  local w,til,seen,ear,hand,about=head()\n"                               \
    "  if not w then break end\n"                                              \
    "  local to=til and " WAKE_CHANNEL "\n"                                    \
    "  local s=til and redis.pcall('pubsub','numsub',to)\n"                    \
    "  if not til or hand=='0' or s.err or " NOT_SEEN_LATELY " then\n"         \
    "    tell()\n"                                                             \
    "    break\n"                                                              \
    "  end\n"                                                                  \
    MINT                                                                       \
    "  local heard=s[2]>0 and " SAY("to", "'f'..string.sub(w,38)..\n"          \
    "    string.format(' %.0f ',n)..seen..' '..KEYS[1]") " or 0\n"             \
    "  given=heard>0\n"                                                        \
    "  if given then\n"                                                        \
    "    drop(w)\n"                                                            \
    "    lower()\n"                                                            \
    GIVE_TO_W("f", HASH)                                                       \
    "    break\n"                                                              \
    "  end\n"                                                                  \
    "  if heard<0 or ear=='0' then break end\n"                                \
    "  drop(w)\n"                                                              \
    "end\n"

/*
 * Into the queue, or still there: then with a sign of life, and with a
 * deadline that no Redisson client would take for past, though all of those
 * before lower it by their wait. The first, whom nobody
 * can lower, looks often, and has one that is past soon after it died. A look is worth it
 * when the lease ends, or when the first is given up, if it was its turn
 * (passed). Who dies here leaves the keys behind: they
 * expire, late where Redisson uses them too.
 */
#define TAKE_FAIR_QUEUE                                                        \
    "local d\n"                                                                \
    "if ARGV[6]=='2' then\n"                                                   \
    "  d=tonumber(redis.call('zscore',D,ARGV[1]))\n"                           \
    "  if not d then redis.call('hdel',S,ARGV[1]) end\n"                       \
    "end\n"                                                                    \
    "local q,ms=redis.call('llen',Q),math.floor(now/1000)\n"                   \
    "local near\n"                                                             \
    "if d then\n"                                                              \
    NEAR("Q")                                                                  \
    "else\n"                                                                   \
    "  q=q+1\n"                                                                \
    NEAR_NEW                                                                   \
    "  q=q-1\n"                                                                \
    "end\n"                                                                    \
    /* In a long queue not all of it for each who looks. */                    \
    "if ARGV[6]=='2' and (" IS_FIRST " or q<=100) then\n"                      \
    TIDY                                                                       \
    "end\n"                                                                    \
    "local foreign=q>redis.call('hlen',S)\n"                                   \
    "local first=near==1\n"                                                    \
    "local ttl=redis.call('pttl',KEYS[1])\n"                                   \
    "if not d then\n"                                                          \
    "  d=ms+math.max(ttl,0)+" WAIT "*(q+1)\n"                                  \
    "  if first then\n"                                                        \
    "    d=ms+" RD_TEXT(RD_ALIVE_MS) "\n"                                      \
    "  elseif foreign then\n"                                                  \
    "    local l=redis.call('zscore',D,redis.call('lindex',Q,-1))\n"           \
    "    d=math.max(tonumber(l) or 0,ms)+" WAIT "\n"                           \
    "  end\n"                                                                  \
    /* A first question may come after the second (scripts_line.h). */         \
    "  if redis.call('zadd',D,'nx',d,ARGV[1])==1 then\n"                       \
    "    q=redis.call('rpush',Q,ARGV[1])\n"                                    \
    "  end\n"                                                                  \
    "elseif first then\n"                                                      \
    "  redis.call('zadd',D,ms+" RD_TEXT(RD_ALIVE_MS) ",ARGV[1])\n"             \
    "else\n"                                                                   \
    "  local least=ms+" RD_TEXT(RD_ALIVE_MS) "+\n"                             \
    "    " WAIT "*((" IS_FIRST " and near or 6)-1)\n"                          \
    "  if d<least then redis.call('zadd',D,least,ARGV[1]) end\n"               \
    "end\n"                                                                    \
    ALIVE_UNTIL                                                                \
    "redis.call('hset',S,ARGV[1],alive..ARGV[9]..' '..ARGV[7]..' '..\n"        \
    "  ARGV[5])\n"                                                             \
    "if q==1 or foreign or ARGV[6]=='2' then\n"                                \
    "  local keep=foreign and 86400000 or " RD_TEXT(RD_KEEP_MS)                \
    "\n"                                                                       \
    "  redis.call('pexpire',Q,keep)\n"                                         \
    "  redis.call('pexpire',D,keep)\n"                                         \
    "  redis.call('pexpire',S,keep)\n"                                         \
    "end\n"                                                                    \
    "foreign=foreign or held and redis.call('exists',KEYS[2])==0\n"            \
    "return {3,now,passed or ttl,foreign and 1 or 0,q," NEARNESS "}"

/* clang-format on */
#endif
