-- Writes the hold of a waiter with the token n. Used only if holdfast created
-- the semaphore, with the size that the waiter requests.
--@takes owner ms fair want about
--@needs KIND Z hand kind n now
--@defines due ms
local ms=math.floor(now/1000)
local due=string.format('%.0f',ms+$ms)
--@include note.lua owner=$owner; fair=$fair; want=$want; about=$about
redis.call('decrby',KEYS.lock,$want)
--@include sem_put.lua owner=$owner; k=tonumber($want)
--@include sem_keep.lua lock=KEYS.lock; holds=KEYS.holds; lease=hand;
--@   is_new=redis.call('pttl',Z)==-1
