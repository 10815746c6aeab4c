/*
 * The latch, in the layout of Redisson's RCountDownLatch: a string with what is
 * left, gone at 0; a message 1 when it is set and 0 when it is 0. What was
 * counted is noted for a while under the client and its request, so that asked
 * again it counts once. Each time it is set by ours it has another number
 * (kind): who waits for an earlier one has waited for long enough. It ends in
 * two hundred years, as no semaphore does: that tells what it is when kind has
 * gone (IS_LATCH).
 *
 *   WAIT   KEYS latch kind permits  ARGV - - valid_until_us queue round
 *          as a TAKE: granted at 0, token 1, and where the round is not 0 and
 *          another, token 2; queued: behind the rest the round, 0: not known
 *   LATCH  KEYS latch kind permits did
 *          ARGV s|d|g count valid_until_us did_ttl_ms channel
 *          {0, now, left}; {4, now, left}: it was set; {5, now}; {6, now}
 */
#ifndef HF_REDIS_SCRIPTS_LATCH_H
#define HF_REDIS_SCRIPTS_LATCH_H

/* clang-format off */

#define IS_LATCH(key) "redis.call('pttl'," key ")>3.1e12"

/* v: what is left. */
#define COUNT                                                                  \
    "local v,kind=redis.call('get',KEYS[1]),redis.call('get',KEYS[2])\n"       \
    "if v and (not tonumber(v) or kind and string.sub(kind,1,1)~='l' or\n"     \
    "  redis.call('exists',KEYS[3])==1) then\n"                                \
    "  return {6,now}\n"                                                       \
    "end\n"                                                                    \
    "v=math.max(tonumber(v) or 0,0)\n"                                         \
    "local function mark()\n"                                                  \
    "  if not kind or redis.call('pttl',KEYS[2])<43200000 then\n"              \
    "    redis.call('set',KEYS[2],kind or 'l','px',86400000)\n"                \
    "  end\n"                                                                  \
    "end\n"

#define SCRIPTS_LATCH                                                          \
    [RD_WAIT_LATCH] =                                                          \
    CLOCK                                                                      \
    COUNT                                                                      \
    "if v==0 then return {2,now,1} end\n"                                      \
    "mark()\n"                                                                 \
    "local round=tonumber(string.sub(kind or 'l',2)) or 0\n"                   \
    "if ARGV[5]~='0' and round>0 and tonumber(ARGV[5])~=round then\n"          \
    "  return {2,now,2}\n"                                                     \
    "end\n"                                                                    \
    "if ARGV[4]=='0' then return {4,now} end\n"                                \
    "return {3,now,-1,1,1,1,round}",                                           \
    [RD_LATCH] =                                                               \
    CLOCK                                                                      \
    "local did=redis.call('get',KEYS[4])\n"                                    \
    "if did then return {0,now,tonumber(did)} end\n"                           \
    COUNT                                                                      \
    "if ARGV[1]=='g' then return {0,now,v} end\n"                              \
    "if ARGV[1]=='s' then\n"                                                   \
    "  if v>0 then return {4,now,v} end\n"                                     \
    "  redis.call('set',KEYS[2],'l'..string.format('%.0f',now),'px',86400000)\n"\
    "  redis.call('set',KEYS[1],ARGV[2],'px',6311520000000)\n"                 \
    "  redis.call('publish',ARGV[5],'1')\n"                                    \
    "  v=tonumber(ARGV[2])\n"                                                  \
    "elseif v>1 then\n"                                                        \
    "  mark()\n"                                                               \
    "  v=redis.call('decr',KEYS[1])\n"                                         \
    "elseif v==1 then\n"                                                       \
    "  redis.call('del',KEYS[1],KEYS[2])\n"                                    \
    "  redis.call('publish',ARGV[5],'0')\n"                                    \
    "  v=0\n"                                                                  \
    "end\n"                                                                    \
    "redis.call('set',KEYS[4],v,'px',ARGV[4])\n"                               \
    "return {0,now,v}"

/* clang-format on */
#endif
