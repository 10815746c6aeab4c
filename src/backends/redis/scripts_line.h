/*
 * The queue of the kinds that are not a mutex: pieces of Lua that are put
 * together in scripts_rw.h and scripts_semaphore.h. One queue for fair and
 * unfair waiters:
 *
 *   L  list of owners, as they came
 *   P  hash, owner -> "until seen ear fair want hand size about": until when,
 *      in ms, it counts as alive (it looks again before that), when it looked
 *      last, whether it was listening (2: and has been told), whether it is
 *      fair, what it wants, the lease with which it may be handed to it (0: it
 *      has to ask), the size of a semaphore, ARGV[5] of its TAKE
 *
 * Who may go, and has shown life just now, gets it in the script that lets go,
 * and the message says so (scripts.c): if Redisson's wait as well, nobody does.
 * Who does not get it is told, and asks. A fair one keeps its place until it
 * comes, or is late; an unfair one gives it up when it is told, and comes back
 * if somebody was faster.
 *
 *   TAKE   KEYS lock holds token line party ...
 *          ARGV owner lease_ms valid_until_us token_ttl_ms about queue fair
 *               listening want ... hand_ms
 *   DROP, LEAVE  the same keys; ARGV owner channel mark ...
 * Redisson's waiters listen to the channel. Ours do as well, together with the
 * mark, to hear Redisson; and since ours are told one by one, what we publish
 * there is for Redisson alone: it has a 0 in front (sub.c), and is left out
 * where nobody but ours would hear it.
 */
#ifndef HF_REDIS_SCRIPTS_LINE_H
#define HF_REDIS_SCRIPTS_LINE_H

/* clang-format off */

/*
 * walk: visits who waits, in order, without the dead, until visit says 2; who
 * is visited leaves if it says 1. tell: was it told, and what visit is to say.
 * on: whether it may be handed to w, where Redisson does not wait (alone);
 * token: of that hold, in n; give: makes it w's.
 */
#define LINE(letter, on, token, give)                                          \
    "local dropped\n"                                                          \
    "local function forget(w)\n"                                               \
    "  redis.call('lrem',L,1,w)\n"                                             \
    "  redis.call('hdel',P,w)\n"                                               \
    "end\n"                                                                    \
    "local function walk(visit)\n"                                             \
    "  local i=0\n"                                                            \
    "  while true do\n"                                                        \
    "    local ws=redis.call('lrange',L,i,i+99)\n"                             \
    "    if #ws==0 then return end\n"                                          \
    "    local ps=redis.call('hmget',P,unpack(ws))\n"                          \
    "    i=i+#ws\n"                                                            \
    "    for j,w in ipairs(ws) do\n"                                           \
    "      local til,seen,ear,fair,want,hand,size,about=string.match(\n"       \
    "        ps[j] or '','^(%d+) (%d+) (%d) (%d) (%w+) (%d+) (%d+) (.*)')\n"   \
    "      local what=1\n"                                                     \
    "      if til and (w==ARGV[1] or til*1000>now) then\n"                     \
    "        what=visit(w,til,seen,ear,fair,want,hand,size,about)\n"           \
    "      else\n"                                                             \
    "        dropped=true\n"                                                   \
    "      end\n"                                                              \
    "      if what==1 then\n"                                                  \
    "        forget(w)\n"                                                      \
    "        i=i-1\n"                                                          \
    "      elseif what==2 then\n"                                              \
    "        return\n"                                                         \
    "      end\n"                                                              \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "local function tell(w,til,seen,ear,fair,want,hand,size,about)\n"          \
    "  local has='0'\n"                                                        \
    "  local to=" WAKE_CHANNEL "\n"                                            \
    "  local on=alone and hand~='0' and not (" NOT_SEEN_LATELY ") and\n"       \
    "    " on " and " LISTENERS("to") ">0\n"                                   \
    "  if on then\n"                                                           \
    token                                                                      \
    "    has=n\n"                                                              \
    "  end\n"                                                                  \
    "  local heard=" SAY("to", "'" letter "'..string.sub(w,38)..' '..has..\n"  \
    "    ' '..seen..' '..KEYS[1]") "\n"                                        \
    "  if on and heard>0 then\n"                                               \
    "    local n,left=has," LEFT_OF_HAND "\n"                                  \
    give                                                                       \
    "    return true,1\n"                                                      \
    "  end\n"                                                                  \
    "  if fair=='0' then return heard>0,1 end\n"                               \
    "  if heard==0 and ear~='0' then return false,1 end\n"                     \
    "  local soon=math.floor(now/1000)+" RD_TEXT(RD_ALIVE_MS) "\n"             \
    "  if tonumber(til)>soon then til=string.format('%.0f',soon) end\n"        \
    "  if heard>0 and ear=='1' then ear='2' end\n"                             \
    "  redis.call('hset',P,w,til..' '..seen..' '..ear..' '..fair..' '..want..\n"\
    "    ' '..hand..' '..size..' '..about)\n"                                  \
    "  return true\n"                                                          \
    "end\n"

/* One that stands in our way: is it there still? Nobody tells of a death. */
#define GONE                                                                   \
    "local function gone(w,ear,about)\n"                                       \
    "  local s=ear~='0' and redis.pcall('pubsub','numsub'," WAKE_CHANNEL ")\n" \
    "  return s and not s.err and s[2]==0\n"                                   \
    "end\n"

/* Nobody waits, neither do we: the short way. Pieces for it are not functions,
 * because making one costs the server as much as calling a command. */
#define ALONE "ARGV[6]~='2' and redis.call('exists',L)==0"

/* It is for us: out of the line, if we stood there. by_chance: nobody had told
 * us, so that others may not have been told either. */
#define COME                                                                   \
    "local by_chance=dropped\n"                                                \
    "if ARGV[6]=='2' then\n"                                                   \
    "  local p=redis.call('hget',P,ARGV[1])\n"                                 \
    "  by_chance=dropped or p and string.match(p,'^%d+ %d+ (%d)')~='2'\n"      \
    "  if p then forget(ARGV[1]) end\n"                                        \
    "end\n"

/* It is not for us, now. A first question may come after the second, by a
 * connection that was lost: it is there once all the same. passed: ms, it would
 * be if somebody was not before us, and how long that one has. foreign: is it
 * held by others than ours? */
#define STAND(ttl, foreign, size)                                              \
    "if ARGV[6]=='0' then return {4,now} end\n"                                \
    "local q,near,joined\n"                                                    \
    "if ARGV[6]=='1' or redis.call('hexists',P,ARGV[1])==0 then\n"             \
    "  q,joined=redis.call('rpush',L,ARGV[1]),true\n"                          \
    NEAR_NEW                                                                   \
    "else\n"                                                                   \
    "  q=redis.call('llen',L)\n"                                               \
    NEAR("L")                                                                  \
    "end\n"                                                                    \
    ALIVE_UNTIL                                                                \
    "local is_new=redis.call('hset',P,ARGV[1],alive..ARGV[8]..' '..ARGV[7]..\n"\
    "  ' '..ARGV[9]..' '..ARGV[11]..' '.." size "..' '..ARGV[5])\n"            \
    "if joined and is_new==0 then redis.call('lrem',L,-1,ARGV[1]) end\n"       \
    "redis.call('pexpire',L," RD_TEXT(RD_KEEP_MS) ")\n"                        \
    "redis.call('pexpire',P," RD_TEXT(RD_KEEP_MS) ")\n"                        \
    "return {3,now,passed and (" IS_FIRST " and math.min(passed,1000) or\n"    \
    "  passed) or " ttl "," foreign " and 1 or 0,q," NEARNESS "}"

#define OUT_OF_LINE                                                            \
    "redis.call('lrem',L,1,ARGV[1])\n"                                         \
    "redis.call('hdel',P,ARGV[1])\n"

/* The name is of another kind. */
#define NOT_HERE                                                               \
    "if ARGV[6]=='2' then\n"                                                   \
    OUT_OF_LINE                                                                \
    "end\n"                                                                    \
    "return {6,now}\n"

/* A token that is not below any exclusive one, and that the next exclusive one
 * will be above; it is kept so long. */
#define SHARED(keep)                                                           \
    "local n,keep=redis.call('get',TOKEN)," keep "\n"                          \
    "if keep=='0' then\n"                                                      \
    "  n=n or string.format('%.0f',now)\n"                                     \
    "  redis.call('set',TOKEN,n)\n"                                            \
    "elseif not n then\n"                                                      \
    "  n=string.format('%.0f',now)\n"                                          \
    "  redis.call('set',TOKEN,n,'px',keep+43200000)\n"                         \
    "end\n"

/* n: of a new hold, exclusive or shared. */
#define TOKEN_OF(is_exclusive, keep)                                           \
    "local token\n"                                                            \
    "if " is_exclusive " then\n"                                               \
    MINT                                                                       \
    COUNT_ON(keep)                                                             \
    "  token=string.format('%.0f',n)\n"                                        \
    "else\n"                                                                   \
    SHARED(keep)                                                               \
    "  token=n\n"                                                              \
    "end\n"                                                                    \
    "local n=token\n"

/* Who holds it, for people. */
#define NOTE(owner, fair, want, about)                                         \
    "redis.call('hset',KEYS[2]," owner ",(" fair "=='1' and 'f' or 'u')..\n"   \
    "  '\\n'.." want "..'\\n'..n..'\\n'..string.format('%.0f',math.floor(now/1000))..\n"\
    "  '\\n'.." about ")\n"

/* Of DROP and the like, where somebody waits. */
#define NOW                                                                    \
    "local t=redis.call('time')\n"                                             \
    "local now=t[1]*1000000+t[2]\n"

/* For Redisson's ears, if there are some; ears and alone are the script's. */
#define EARS                                                                   \
    "local s=redis.pcall('pubsub','numsub',CH,MARK)\n"                         \
    "ears=s.err or s[2]>s[4]\n"
#define ANNOUNCE(text)                                                         \
    EARS                                                                       \
    "if ears then redis.call('publish',CH," text ") end\n"

/* Of INSPECT: owner, what P has of it, and so on. */
#define WAITERS                                                                \
    "local waiters={}\n"                                                       \
    "for _,w in ipairs(redis.call('lrange',KEYS[4],0,999)) do\n"               \
    "  waiters[#waiters+1]=w\n"                                                \
    "  waiters[#waiters+1]=redis.call('hget',KEYS[5],w) or ''\n"               \
    "end\n"

/* It was let go before. */
#define NOBODY                                                                 \
    "if redis.call('exists',KEYS[1])==0 and #waiters==0 then\n"                \
    "  return {'-',redis.call('get',KEYS[3]) or 0,0,0,{},{}}\n"                \
    "end\n"

/* clang-format on */
#endif
