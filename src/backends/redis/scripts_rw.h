/*
 * The read-write lock, in Redisson's layout: a hash with "mode", owner -> 1 for
 * each read hold, "owner:write" -> 1 for the write hold, and a key for each
 * read hold that lives as long as its lease: {n}:owner:rwlock_timeout:1. The
 * hash lives as long as the longest of them. Here want is r or w, and ARGV[10],
 * of the others ARGV[4], is {n}.
 *
 * A reader of ours whose key is gone is dead, though its field is there. Of
 * Redisson's nobody knows: it does not renew those keys reliably (3.52 renews
 * those of the wrong lock where a client reads several), so that they count as
 * long as the hash lives.
 */
#ifndef HF_REDIS_SCRIPTS_RW_H
#define HF_REDIS_SCRIPTS_RW_H

/* clang-format off */

/* Who reads: how many, and for how long the hash has to live. */
#define READERS                                                                \
    "local function readers()\n"                                               \
    "  local all,alive,longest=redis.call('hgetall',KEYS[1]),0,0\n"            \
    "  for i=1,#all,2 do\n"                                                    \
    "    local f,ms=all[i],-2\n"                                               \
    "    if f~='mode' then\n"                                                  \
    "      for k=1,tonumber(all[i+1]) or 0 do\n"                               \
    "        ms=math.max(ms,redis.call('pttl',BASE..':'..f..':rwlock_timeout:'..k))\n"\
    "      end\n"                                                              \
    "      if ms<0 and redis.call('hexists',KEYS[2],f)==1 then\n"              \
    "        redis.call('hdel',KEYS[1],f)\n"                                   \
    "        redis.call('hdel',KEYS[2],f)\n"                                   \
    "      else\n"                                                             \
    "        if ms<0 then ms=redis.call('pttl',KEYS[1]) end\n"                 \
    "        alive,longest=alive+1,math.max(longest,ms)\n"                     \
    "      end\n"                                                              \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "  return alive,longest\n"                                                 \
    "end\n"

/* Those are told who may go: the readers that stand together, or one writer. */
#define CALL_RW                                                                \
    "local function call(mode)\n"                                              \
    "  if mode=='write' then return end\n"                                     \
    "  local read=mode=='read'\n"                                              \
    "  walk(function(w,til,seen,ear,fair,want,...)\n"                          \
    "    if want=='w' and read then return fair=='1' and 2 or nil end\n"       \
    "    if w==ARGV[1] then return want=='w' and 2 or nil end\n"               \
    "    local told,what=tell(w,til,seen,ear,fair,want,...)\n"                 \
    "    if told and want=='w' then\n"                                         \
    "      if what==1 then forget(w) end\n"                                    \
    "      return 2\n"                                                         \
    "    end\n"                                                                \
    "    read=read or told\n"                                                  \
    "    return what\n"                                                        \
    "  end)\n"                                                                 \
    "end\n"

/* After a write all of Redisson's that sleep are woken by a 1. One that is just
 * about to sleep does not keep it, and would sleep until the lease it has seen
 * ends; a 0 it keeps. */
#define ANNOUNCE_RW(was_write)                                                 \
    EARS                                                                       \
    "if ears and " was_write " then redis.call('publish',CH,'01') end\n"       \
    "if ears then redis.call('publish',CH,'00') end\n"

/* Ours is out of the hash: what is left of it. freed: for writers, or (after a
 * write) for readers. sooner: if the others die, it is free sooner than who
 * waits knows. */
#define REST_RW                                                                \
    "local left=redis.call('pttl',KEY)\n"                                      \
    "redis.call('del',KEY)\n"                                                  \
    "redis.call('hdel',KEYS[2],ARGV[1])\n"                                     \
    "local freed,sooner=redis.call('hlen',KEYS[1])==1\n"                       \
    "if not freed and mode=='write' then\n"                                    \
    "  redis.call('hset',KEYS[1],'mode','read')\n"                             \
    "  freed='read'\n"                                                         \
    "end\n"                                                                    \
    "if freed~=true and left+1>=redis.call('pttl',KEYS[1]) then\n"             \
    "  local alive,longest=readers()\n"                                        \
    "  if alive==0 then\n"                                                     \
    "    freed=true\n"                                                         \
    "  elseif longest>0 then\n"                                                \
    "    redis.call('pexpire',KEYS[1],longest)\n"                              \
    "    sooner=left-longest>500\n"                                            \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "if freed==true then redis.call('del',KEYS[1],KEYS[2]) end\n"              \
    "if freed then\n"                                                          \
    ANNOUNCE_RW("mode=='write'")                                               \
    "  alone=not ears\n"                                                       \
    "  mode=freed=='read' and freed\n"                                         \
    "end\n"

/* The hold with the token n is the owner's. */
#define PUT_RW(owner, ms, fair, want, about)                                   \
    NOTE(owner, fair, want, about)                                             \
    "if redis.call('pttl',KEYS[2])<tonumber(" ms ") then\n"                    \
    "  redis.call('pexpire',KEYS[2]," ms ")\n"                                 \
    "end\n"                                                                    \
    "if " want "=='w' then\n"                                                  \
    "  redis.call('hset',KEYS[1],'mode','write'," owner "..':write',1)\n"      \
    "else\n"                                                                   \
    "  redis.call('set',BASE..':'.." owner "..':rwlock_timeout:1',1,'px'," ms ")\n"\
    "  redis.call('hset',KEYS[1],'mode','read'," owner ",1)\n"                 \
    "end\n"                                                                    \
    "if redis.call('pttl',KEYS[1])<tonumber(" ms ") then\n"                    \
    "  redis.call('pexpire',KEYS[1]," ms ")\n"                                 \
    "end\n"

#define GRANT_RW                                                               \
    TOKEN_OF("ARGV[9]=='w'", "ARGV[4]")                                        \
    PUT_RW("ARGV[1]", "ARGV[2]", "ARGV[7]", "ARGV[9]", "ARGV[5]")

#define LINE_RW                                                                \
    LINE("r", "true", TOKEN_OF("want=='w'", KEEP_OF_HAND),                     \
         PUT_RW("w", "left", "fair", "want", "about"))

#define ENDS_RW                                                                \
    "local TOKEN,L,P,CH,MARK,BASE=KEYS[3],KEYS[4],KEYS[5],ARGV[2],ARGV[3],\n"  \
    "  ARGV[4]\n"                                                              \
    "local ears,alone\n"                                                       \
    "local KEY=BASE..':'..ARGV[1]..':rwlock_timeout:1'\n"

/* A write hold of the owner o in the hash at k becomes a read hold, with the same
 * end, or ms from now. */
#define GO_DOWN(k, holds, o, base, ms)                                         \
    "redis.call('hdel'," k "," o "..':write')\n"                               \
    "redis.call('set'," base "..':'.." o "..':rwlock_timeout:1',1,'px',\n"     \
    "  math.max(" ms ",redis.call('pttl'," k ")))\n"                           \
    "redis.call('hset'," k "," o ",1,'mode','read')\n"                         \
    "local h=redis.call('hget'," holds "," o ")\n"                             \
    "if h then\n"                                                              \
    "  redis.call('hset'," holds "," o ",(string.gsub(h,'^(.)\\nw\\n','%1\\nr\\n')))\n"\
    "end\n"

#define SCRIPTS_RW                                                             \
    [RD_TAKE_RW] =                                                             \
    CLOCK                                                                      \
    "local TOKEN,L,P,BASE,alone=KEYS[3],KEYS[4],KEYS[5],ARGV[10]\n"            \
    "local KEY=BASE..':'..ARGV[1]..':rwlock_timeout:1'\n"                      \
    ASK("'hmget',KEYS[1],'mode',ARGV[1],ARGV[1]..':write'", OUT_OF_LINE)       \
    "local f,mode=has,has[1]\n"                                                \
    "if not mode and redis.call('exists',KEYS[1])==1 then\n"                   \
    NOT_HERE                                                                   \
    "end\n"                                                                    \
    "if f[2] or f[3] then\n"                                                   \
    "  if f[2] then redis.call('set',KEY,1,'px',ARGV[2]) end\n"                \
    AGAIN                                                                      \
    SHARED("ARGV[4]")                                                          \
    "  return {2,now,n}\n"                                                     \
    "end\n"                                                                    \
    "if (not mode or mode=='read' and ARGV[9]=='r') and " ALONE " then\n"      \
    GRANT_RW                                                                   \
    "  return {2,now,n}\n"                                                     \
    "end\n"                                                                    \
    LINE_RW                                                                    \
    GONE                                                                       \
    READERS                                                                    \
    CALL_RW                                                                    \
    "if ARGV[9]=='w' and mode=='read' and readers()==0 then\n"                 \
    "  redis.call('del',KEYS[1],KEYS[2])\n"                                    \
    "  mode=false\n"                                                           \
    "end\n"                                                                    \
    "local fits,passed=not mode or mode=='read' and ARGV[9]=='r'\n"            \
    "if fits and ARGV[7]=='1' then\n"                                          \
    "  walk(function(w,til,seen,ear,fair,want,hand,size,about)\n"              \
    "    if w==ARGV[1] then return 2 end\n"                                    \
    "    if ARGV[9]=='w' or want=='w' then\n"                                  \
    "      if gone(w,ear,about) then dropped=true return 1 end\n"              \
    "      fits,passed=false,til-math.floor(now/1000)\n"                       \
    "      return 2\n"                                                         \
    "    end\n"                                                                \
    "  end)\n"                                                                 \
    "  if not fits and ARGV[6]=='2' then call(mode) end\n"                     \
    "end\n"                                                                    \
    "if fits then\n"                                                           \
    COME                                                                       \
    GRANT_RW                                                                   \
    "  if ARGV[9]=='r' and (by_chance or not mode and ARGV[7]=='0') and\n"     \
    "    redis.call('exists',L)==1 then\n"                                     \
    "    call('read')\n"                                                       \
    "  end\n"                                                                  \
    "  return {2,now,n}\n"                                                     \
    "end\n"                                                                    \
    STAND("redis.call('pttl',KEYS[1])",                                        \
          "redis.call('hlen',KEYS[1])-1>redis.call('hlen',KEYS[2])", "'0'"),   \
    [RD_DROP_RW] =                                                             \
    ENDS_RW                                                                    \
    "local mode=redis.call('hget',KEYS[1],'mode')\n"                           \
    "if not mode or redis.call('hdel',KEYS[1],ARGV[1],ARGV[1]..':write')==0 then\n"\
    "  return 0\n"                                                             \
    "end\n"                                                                    \
    "if redis.call('hlen',KEYS[1])==1 and redis.call('exists',L)==0 then\n"    \
    "  redis.call('del',KEYS[1],KEYS[2],KEY)\n"                                \
    ANNOUNCE_RW("mode=='write'")                                               \
    "  return 1\n"                                                             \
    "end\n"                                                                    \
    NOW                                                                        \
    LINE_RW                                                                    \
    READERS                                                                    \
    CALL_RW                                                                    \
    REST_RW                                                                    \
    "if freed and redis.call('exists',L)==1 then call(mode) end\n"             \
    "alone=false\n"                                                            \
    "if sooner then call(false) end\n"                                         \
    "return 1",                                                                \
    [RD_LEAVE_RW] =                                                            \
    ENDS_RW                                                                    \
    NOW                                                                        \
    LINE_RW                                                                    \
    READERS                                                                    \
    CALL_RW                                                                    \
    "forget(ARGV[1])\n"                                                        \
    "local mode=redis.call('hget',KEYS[1],'mode')\n"                           \
    "local ours=mode and redis.call('hdel',KEYS[1],ARGV[1],ARGV[1]..':write') or 0\n"\
    "if ours>0 then\n"                                                         \
    REST_RW                                                                    \
    "end\n"                                                                    \
    "if redis.call('exists',L)==1 then call(mode) end\n"                       \
    "return ours",                                                             \
    [RD_RENEW_RW] =                                                            \
    "local r={}\n"                                                             \
    "for i=1,#KEYS,2 do\n"                                                     \
    "  local a=2*i\n"                                                          \
    "  local owner,ms,base=ARGV[1]..ARGV[a],ARGV[a+1],ARGV[a+2]\n"             \
    "  local f=redis.pcall('hmget',KEYS[i],owner,owner..':write')\n"           \
    "  if f.err then f={} end\n"                                               \
    "  if f[2] and ARGV[a+3]~='' then\n"                                       \
    GO_DOWN("KEYS[i]", "KEYS[i+1]", "owner", "base", "ms")                     \
    "    redis.call('publish',ARGV[a+3],'1')\n"                                \
    "  elseif f[1] then\n"                                                     \
    "    local key=base..':'..owner..':rwlock_timeout:1'\n"                    \
    "    if redis.call('pttl',key)<tonumber(ms) and\n"                         \
    "      redis.call('pexpire',key,ms)==0 then\n"                             \
    "      redis.call('set',key,1,'px',ms)\n"                                  \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "  if f[1] or f[2] then\n"                                                 \
    "    for k=i,i+1 do\n"                                                     \
    "      if redis.call('pttl',KEYS[k])<tonumber(ms) then\n"                  \
    "        redis.call('pexpire',KEYS[k],ms)\n"                               \
    "      end\n"                                                              \
    "    end\n"                                                                \
    "    r[#r+1]='1'\n"                                                        \
    "  else\n"                                                                 \
    "    r[#r+1]='0'\n"                                                        \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return table.concat(r)",                                                  \
    [RD_DOWNGRADE] =                                                           \
    ENDS_RW                                                                    \
    "local f=redis.call('hmget',KEYS[1],ARGV[1],ARGV[1]..':write')\n"          \
    "if f[1] then return 1 end\n"                                              \
    "if not f[2] then return 0 end\n"                                          \
    GO_DOWN("KEYS[1]", "KEYS[2]", "ARGV[1]", "BASE", "1")                      \
    ANNOUNCE_RW("true")                                                        \
    "if redis.call('exists',L)==0 then return 1 end\n"                         \
    NOW                                                                        \
    LINE_RW                                                                    \
    CALL_RW                                                                    \
    "alone=not ears\n"                                                         \
    "call('read')\n"                                                           \
    "return 1",                                                                \
    [RD_INSPECT_RW] =                                                          \
    ENDS_RW                                                                    \
    "local holders={}\n"                                                       \
    WAITERS                                                                    \
    NOBODY                                                                     \
    "local all=redis.call('hgetall',KEYS[1])\n"                                \
    "for i=1,#all,2 do\n"                                                      \
    "  local f,ms=all[i],-2\n"                                                 \
    "  if f~='mode' then\n"                                                    \
    "    local o=string.match(f,'^(.*):write$')\n"                             \
    "    if o then\n"                                                          \
    "      ms=redis.call('pttl',KEYS[1])\n"                                    \
    "    else\n"                                                               \
    "      for k=1,tonumber(all[i+1]) or 0 do\n"                               \
    "        ms=math.max(ms,redis.call('pttl',BASE..':'..f..':rwlock_timeout:'..k))\n"\
    "      end\n"                                                              \
    "    end\n"                                                                \
    /* One of ours that is dead is still there (readers()). */                 \
    "    local note=redis.call('hget',KEYS[2],o or f)\n"                       \
    "    if o or ms>=0 or not note then\n"                                     \
    "      holders[#holders+1]={o or f,o and 'w' or 'r',ms,note or ''}\n"      \
    "    end\n"                                                                \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "return {'r',redis.call('get',KEYS[3]) or 0,0,0,holders,waiters}",         \
    [RD_BREAK_RW] =                                                            \
    ENDS_RW                                                                    \
    NOW                                                                        \
    LINE_RW                                                                    \
    CALL_RW                                                                    \
    "if redis.call('hexists',KEYS[1],'mode')==0 then return 0 end\n"           \
    "local all=redis.call('hgetall',KEYS[1])\n"                                \
    "for i=1,#all,2 do\n"                                                      \
    "  for k=1,tonumber(all[i+1]) or 0 do\n"                                   \
    "    redis.call('del',BASE..':'..all[i]..':rwlock_timeout:'..k)\n"         \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "redis.call('del',KEYS[1],KEYS[2])\n"                                      \
    ANNOUNCE_RW("true")                                                        \
    "call(false)\n"                                                            \
    "return 1"

/* clang-format on */
#endif
