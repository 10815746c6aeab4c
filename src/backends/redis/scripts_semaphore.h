/*
 * The semaphore, in the layout of Redisson's RPermitExpirableSemaphore: a
 * string with what is left, and Z, a sorted set of permits that are out -> when
 * each comes back by itself (wall-clock ms). Ours are "owner:1" to "owner:k"
 * for a hold of k. Whoever looks takes back what is due.
 *
 * KIND tells what the string is: "s <size>" made by us, in which case it goes
 * when all permits are back; "r <size>" made by Redisson, which stays; "l" a
 * latch. Of one that Redisson made the size is what is left and what is out. If
 * that is less than it was once, an RSemaphore has the rest.
 *
 *   TAKE         KEYS ... permits kind  ARGV ... size; want is how many
 *   DROP, LEAVE  the same keys; ARGV owner channel mark
 */
#ifndef HF_REDIS_SCRIPTS_SEMAPHORE_H
#define HF_REDIS_SCRIPTS_SEMAPHORE_H

/* clang-format off */

/* At ms: the permits of the dead come back; how many. */
#define RECLAIM                                                                \
    "local due=redis.call('zrangebyscore',Z,'-inf',string.format('%.0f',ms))\n"\
    "local back=#due\n"                                                        \
    "for _,id in ipairs(due) do\n"                                             \
    "  redis.call('zrem',Z,id)\n"                                              \
    "  redis.call('hdel',KEYS[2],(string.gsub(id,':%d+$','')))\n"              \
    "end\n"                                                                    \
    "if back>0 then redis.call('incrby',KEYS[1],back) end\n"

/* Those are told who can have what they want of v permits; without v of all. */
#define CALL_SEM                                                               \
    "local function call(v)\n"                                                 \
    "  if v and v<1 then return end\n"                                         \
    "  walk(function(w,til,seen,ear,fair,want,hand,size,...)\n"                \
    "    v=v or tonumber(size)\n"                                              \
    "    if w==ARGV[1] then return ARGV[7]=='1' and 2 or nil end\n"            \
    "    if tonumber(want)>v then return fair=='1' and 2 or nil end\n"         \
    "    local told,what=tell(w,til,seen,ear,fair,want,hand,size,...)\n"       \
    "    if told then v=v-want end\n"                                          \
    "    if v<1 then\n"                                                        \
    "      if what==1 then forget(w) end\n"                                    \
    "      return 2\n"                                                         \
    "    end\n"                                                                \
    "    return what\n"                                                        \
    "  end)\n"                                                                 \
    "end\n"

/* The keys outlive the last permit by a day: long enough for one that Redisson
 * has taken meanwhile, and nothing piles up. holds goes with the last hold, and
 * its end with it: so it tells whether there are new keys. But where Redisson
 * took permits back, z may be new as well (is_new). */
#define KEEP(n, holds, z, kind, what, ms, lease, is_new)                       \
    "if redis.call('pttl'," holds ")<" lease "+43200000 or " is_new " then\n"  \
    "  local last=redis.call('zrange'," z ",-1,-1,'withscores')[2] or " ms "\n"\
    "  last=string.format('%.0f',math.min(math.max(last-" ms ",0),3e12)+86400000)\n"\
    "  redis.call('pexpire'," kind ",last)\n"                                  \
    "  redis.call('pexpire'," holds ",last)\n"                                 \
    "  if string.sub(" what " or 'r',1,1)=='s' then\n"                         \
    "    redis.call('pexpire'," n ",last)\n"                                   \
    "    redis.call('pexpire'," z ",last)\n"                                   \
    "  end\n"                                                                  \
    "end\n"

/* What we have is given back, and what is due: v is left then, freed says that
 * something was. */
#define REST_SEM                                                               \
    "local v,k,freed,kind=redis.call('get',KEYS[1]),0\n"                       \
    "while redis.call('zrem',Z,ARGV[1]..':'..string.format('%.0f',k+1))==1 do\n"\
    "  k=k+1\n"                                                                \
    "end\n"                                                                    \
    "if k>0 then redis.call('hdel',KEYS[2],ARGV[1]) end\n"                     \
    "if v then\n"                                                              \
    "  freed=k>0\n"                                                            \
    "  if redis.call('exists',Z)==1 then\n"                                    \
    NOW                                                                        \
    "    local ms=math.floor(now/1000)\n"                                      \
    RECLAIM                                                                    \
    "    freed=freed or back>0\n"                                              \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "if freed then\n"                                                          \
    "  v=redis.call('incrby',KEYS[1],k)\n"                                     \
    "  kind=redis.call('get',KIND)\n"                                          \
    ANNOUNCE_SEM                                                               \
    "end\n"

#define ANNOUNCE_SEM                                                           \
    ANNOUNCE("'0'..string.format('%.0f',v)")

/* All permits are back, and Redisson does not listen: as if it had never been. */
#define END_SEM                                                                \
    "if not ears and redis.call('exists',Z)==0 and\n"                          \
    "  kind=='s '..string.format('%.0f',v) then\n"                             \
    "  redis.call('del',KEYS[1],KEYS[2],KIND)\n"                               \
    "end\n"

/* The hold with the token n is the owner's, who wants k. */
#define PUT_SEM(owner, k, due)                                                 \
    "for i=1," k " do\n"                                                       \
    "  redis.call('zadd',Z," due "," owner "..':'..string.format('%.0f',i))\n" \
    "end\n"

/* The hold goes to us; n is its token. With all permits it is exclusive. */
#define GRANT_SEM                                                              \
    TOKEN_OF("k==size", "ARGV[4]")                                             \
    NOTE("ARGV[1]", "ARGV[7]", "ARGV[9]", "ARGV[5]")                           \
    "if v then\n"                                                              \
    "  redis.call('decrby',KEYS[1],k)\n"                                       \
    "else\n"                                                                   \
    "  redis.call('set',KEYS[1],size-k)\n"                                     \
    "end\n"                                                                    \
    "if not kind then\n"                                                       \
    "  kind=v and met or made\n"                                               \
    "  redis.call('set',KIND,kind,'px',ARGV[2]+86400000)\n"                    \
    "end\n"                                                                    \
    PUT_SEM("ARGV[1]", "k", "due")                                             \
    KEEP("KEYS[1]", "KEYS[2]", "Z", "KIND", "kind", "ms", "ARGV[2]", "out==0")

/* It goes to w, if it is the one that w asked for, and we made it. */
#define GIVE_SEM                                                               \
    "local ms=math.floor(now/1000)\n"                                          \
    "local due=string.format('%.0f',ms+left)\n"                                \
    NOTE("w", "fair", "want", "about")                                         \
    "redis.call('decrby',KEYS[1],want)\n"                                      \
    PUT_SEM("w", "tonumber(want)", "due")                                      \
    KEEP("KEYS[1]", "KEYS[2]", "Z", "KIND", "kind", "ms", "hand",              \
         "redis.call('pttl',Z)==-1")
#define LINE_SEM                                                               \
    LINE("s", "kind=='s '..size", TOKEN_OF("want==size", KEEP_OF_HAND),        \
         GIVE_SEM)

#define ENDS_SEM                                                               \
    "local TOKEN,L,P,Z,KIND,CH,MARK=KEYS[3],KEYS[4],KEYS[5],KEYS[6],KEYS[7],\n"\
    "  ARGV[2],ARGV[3]\n"                                                      \
    "local ears,alone\n"


#define SCRIPTS_SEMAPHORE                                                      \
    [RD_TAKE_SEM] =                                                            \
    CLOCK                                                                      \
    "local TOKEN,L,P,Z,KIND,alone=KEYS[3],KEYS[4],KEYS[5],KEYS[6],KEYS[7]\n"   \
    "local ms,k,size=math.floor(now/1000),tonumber(ARGV[9]),tonumber(ARGV[10])\n"\
    ASK("'get',KEYS[1]", OUT_OF_LINE)                                          \
    "local v,kind,came=has,redis.call('get',KIND),0\n"                         \
    "local made,met,out='s '..ARGV[10],'r '..ARGV[10],0\n"                     \
    "has=nil\n"                                                                \
    "if v then\n"                                                              \
    RECLAIM                                                                    \
    "  came=back\n"                                                            \
    "  v=(tonumber(v) or -1e9)+back\n"                                         \
    "  out=redis.call('zcard',Z)\n"                                            \
    "  local known=kind==made or kind==met and v+out<=size\n"                  \
    "  local is=string.sub(kind or '',1,1)\n"                                  \
    "  if not known and (v+out~=size or is=='l' and out==0 or is=='s' or\n"    \
    "    not kind and " IS_LATCH("KEYS[1]") ") then\n"                         \
    NOT_HERE                                                                   \
    "  end\n"                                                                  \
    "  if not known then kind=false end\n"                                     \
    "  has=redis.call('zscore',Z,ARGV[1]..':1')\n"                             \
    "else\n"                                                                   \
    /* A stranger's key, of another type, stops us here. */                    \
    "  redis.call('zscore',Z,'')\n"                                            \
    "  redis.call('del',Z,KEYS[2],KIND)\n"                                     \
    "  kind=false\n"                                                           \
    "end\n"                                                                    \
    "local due=string.format('%.0f',ms+ARGV[2])\n"                             \
    "if has then\n"                                                            \
    "  for i=1,k do\n"                                                         \
    "    redis.call('zadd',Z,'xx',due,ARGV[1]..':'..string.format('%.0f',i))\n"\
    "  end\n"                                                                  \
    KEEP("KEYS[1]", "KEYS[2]", "Z", "KIND", "kind", "ms", "ARGV[2]", "false")  \
    SHARED("ARGV[4]")                                                          \
    "  return {2,now,n}\n"                                                     \
    "end\n"                                                                    \
    "local free=v or size\n"                                                   \
    "if free>=k and came==0 and " ALONE " then\n"                              \
    GRANT_SEM                                                                  \
    "  return {2,now,n}\n"                                                     \
    "end\n"                                                                    \
    LINE_SEM                                                                   \
    GONE                                                                       \
    CALL_SEM                                                                   \
    "local fits,passed,sum,i=free>=k,nil,0,0\n"                                \
    "if fits and ARGV[7]=='1' then\n"                                          \
    "  walk(function(w,til,seen,ear,fair,want,hand,size,about)\n"              \
    "    if w==ARGV[1] then return 2 end\n"                                    \
    "    i=i+1\n"                                                              \
    "    if i<=8 and gone(w,ear,about) then\n"                                 \
    "      dropped=true\n"                                                     \
    "      return 1\n"                                                         \
    "    end\n"                                                                \
    "    sum=sum+want\n"                                                       \
    "    if sum+k>free then\n"                                                 \
    "      fits,passed=false,til-ms\n"                                         \
    "      return 2\n"                                                         \
    "    end\n"                                                                \
    "  end)\n"                                                                 \
    "end\n"                                                                    \
    "if fits then\n"                                                           \
    COME                                                                       \
    GRANT_SEM                                                                  \
    "  if came>0 or by_chance then call(free-k) end\n"                         \
    "  return {2,now,n}\n"                                                     \
    "end\n"                                                                    \
    "if came>0 or passed and ARGV[6]=='2' then call(free) end\n"               \
    "local first=redis.call('zrange',Z,0,0,'withscores')[2]\n"                 \
    "out=redis.call('zcard',Z)\n"                                              \
    STAND("first and math.max(first-ms,0) or -1",                              \
          "out>redis.call('hlen',KEYS[2])", "ARGV[10]"),                       \
    [RD_DROP_SEM] =                                                            \
    ENDS_SEM                                                                   \
    REST_SEM                                                                   \
    "if freed then\n"                                                          \
    "  if redis.call('exists',L)==1 then\n"                                    \
    NOW                                                                        \
    LINE_SEM                                                                   \
    CALL_SEM                                                                   \
    "    alone=not ears\n"                                                     \
    "    call(v)\n"                                                            \
    "  end\n"                                                                  \
    END_SEM                                                                    \
    "end\n"                                                                    \
    "return k>0 and 1 or 0",                                                   \
    [RD_LEAVE_SEM] =                                                           \
    ENDS_SEM                                                                   \
    NOW                                                                        \
    OUT_OF_LINE                                                                \
    REST_SEM                                                                   \
    LINE_SEM                                                                   \
    CALL_SEM                                                                   \
    "if redis.call('exists',L)==1 then\n"                                      \
    "  alone=freed and not ears\n"                                             \
    "  call(tonumber(v))\n"                                                    \
    "end\n"                                                                    \
    "if freed then\n"                                                          \
    END_SEM                                                                    \
    "end\n"                                                                    \
    "return k>0 and 1 or 0",                                                   \
    [RD_RENEW_SEM] =                                                           \
    "local r,t,wrote={},redis.call('time')\n"                                  \
    "local ms=t[1]*1000+math.floor(t[2]/1000)\n"                               \
    "for i=1,#KEYS,4 do\n"                                                     \
    "  local Z,KIND,a=KEYS[i+2],KEYS[i+3],(i+1)/2\n"                           \
    "  local owner,lease=ARGV[1]..ARGV[a+1]..':',ARGV[a+2]\n"                  \
    "  local kind=redis.call('get',KIND)\n"                                    \
    "  local has=redis.pcall('zscore',Z,owner..'1')\n"                         \
    "  if type(has)=='string' and redis.call('exists',KEYS[i])==1 then\n"      \
    "    if tonumber(has)<ms+lease then\n"                                     \
    /* ZADD may not come first where there is no memory (scripts.c). */        \
    "      wrote=wrote or redis.call('zrem',Z,'')\n"                           \
    "      local k=1\n"                                                        \
    "      repeat\n"                                                           \
    "        redis.call('zadd',Z,'xx',string.format('%.0f',ms+lease),\n"       \
    "          owner..string.format('%.0f',k))\n"                              \
    "        k=k+1\n"                                                          \
    "      until not redis.call('zscore',Z,owner..string.format('%.0f',k))\n"  \
    KEEP("KEYS[i]", "KEYS[i+1]", "Z", "KIND", "kind", "ms", "lease", "false")  \
    "    end\n"                                                                \
    "    r[#r+1]='1'\n"                                                        \
    "  else\n"                                                                 \
    "    r[#r+1]='0'\n"                                                        \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return table.concat(r)",                                                  \
    [RD_INSPECT_STRING] =                                                      \
    ENDS_SEM                                                                   \
    "local kind,holders=redis.call('get',KIND),{}\n"                           \
    "kind=kind or " IS_LATCH("KEYS[1]") " and 'l' or ''\n"                     \
    "local v,of=tonumber(redis.call('get',KEYS[1])) or 0,{}\n"                 \
    NOW                                                                        \
    "local ms=math.floor(now/1000)\n"                                          \
    WAITERS                                                                    \
    NOBODY                                                                     \
    /* As if what is due was taken back: nothing is written here. */           \
    "local at=string.format('%.0f',ms)\n"                                      \
    "local due=#redis.call('zrangebyscore',Z,'-inf',at)\n"                     \
    "local out=redis.call('zcard',Z)-due\n"                                    \
    "v=v+due\n"                                                                \
    "local size=v+out\n"                                                       \
    "if string.sub(kind,1,1)=='l' and out+due==0 then\n"                       \
    "  return {'l',0,0,v,holders,waiters}\n"                                   \
    "end\n"                                                                    \
    "if kind=='' and out+due==0 then return {'',0,0,0,{},{}} end\n"            \
    "if out==0 and #waiters==0 and kind=='s '..string.format('%.0f',v) then\n" \
    "  return {'-',redis.call('get',KEYS[3]) or 0,0,0,{},{}}\n"                \
    "end\n"                                                                    \
    "local all=redis.call('zrangebyscore',Z,'('..at,'+inf','withscores',\n"    \
    "  'limit',0,10000)\n"                                                     \
    "for i=1,#all,2 do\n"                                                      \
    "  local o=string.match(all[i],'^(%x+%-%x+%-%x+%-%x+%-%x+:%d+):%d+$')\n"   \
    "  local h=o and of[o]\n"                                                  \
    "  if h then\n"                                                            \
    "    h[2]=h[2]+1\n"                                                        \
    "  else\n"                                                                 \
    "    h={o or string.gsub(all[i],'.',function(c)\n"                         \
    "      return string.format('%02x',string.byte(c)) end),1,\n"              \
    "      all[i+1]-ms>3e12 and -1 or all[i+1]-ms,\n"                          \
    "      o and redis.call('hget',KEYS[2],o) or ''}\n"                        \
    "    holders[#holders+1]=h\n"                                              \
    "    if o then of[o]=h end\n"                                              \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "for _,h in ipairs(holders) do h[2]=string.format('%.0f',h[2]) end\n"      \
    "return {'s',redis.call('get',KEYS[3]) or 0,\n"                            \
    "  string.match(kind,'^%a (%d+)') or size,v,holders,waiters}",             \
    [RD_BREAK_STRING] =                                                        \
    ENDS_SEM                                                                   \
    NOW                                                                        \
    "local kind,ms=redis.call('get',KIND),math.floor(now/1000)\n"              \
    LINE_SEM                                                                   \
    CALL_SEM                                                                   \
    "if redis.call('exists',KEYS[1])==0 then return 0 end\n"                   \
    "kind=kind or " IS_LATCH("KEYS[1]") " and 'l'\n"                           \
    "if string.sub(kind or '',1,1)=='l' and redis.call('exists',Z)==0 then\n"  \
    "  redis.call('del',KEYS[1],KIND)\n"                                       \
    "  redis.call('publish',ARGV[4],'0')\n"                                    \
    "  return 1\n"                                                             \
    "end\n"                                                                    \
    "if not kind and redis.call('exists',Z)==0 then return " RD_TEXT(RD_OTHER) " end\n"\
    RECLAIM                                                                    \
    "local out=redis.call('zcard',Z)\n"                                        \
    "local v=redis.call('incrby',KEYS[1],out)\n"                               \
    "redis.call('del',Z,KEYS[2])\n"                                            \
    ANNOUNCE_SEM                                                               \
    "call(v)\n"                                                                \
    END_SEM                                                                    \
    "return out>0 and 1 or 0"

/* clang-format on */
#endif
