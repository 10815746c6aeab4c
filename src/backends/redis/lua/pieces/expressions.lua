-- Expressions that the scripts use as $name. Neither they nor the pieces are
-- functions, because creating a function costs the server as much as calling a
-- command.

-- Reply of INSPECT and BREAK of a mutex: the name belongs to an HF_RWLOCK, or
-- to an HF_SEMAPHORE or HF_LATCH.
--@define other_rw $RD_OTHER+2
--@define other_string $RD_OTHER+3

-- A latch that we have set expires in 200 years, which no semaphore does. The
-- expiry distinguishes the two after the key with the kind of the string has
-- expired.
--@define latch_ttl_ms 3.1e12

-- The value of `near` for a waiter among the last in a queue; whether a waiter
-- is among the first; and the number in the reply that says so to the waiter.
--@define last 9
--@define is_first (near or $last)<$last
--@define nearness near and ($is_first and 1 or 2) or 0

-- The channel to which the client of the owner `w` listens. `about`, which
-- describes that client, begins with the length of its prefix.
--@define wake_channel 'holdfast:wake:{'..string.sub(KEYS.lock,1,
--@      string.match(about,'^%d+') or 0)..'}:'..string.sub(w,1,36)

-- Whether a waiter polls rarely or has not polled lately. The lock is not
-- handed over to such a waiter: it may be suspended, and if the message were
-- lost, it would notice late that it holds the lock.
--@define not_seen_lately (til-seen>$RD_ALIVE_MS or
--@  seen+$RD_ALIVE_MS<now/1000)

-- A lock is handed over with the lease `hand`, which counts from the waiter's
-- last poll. The first expression is how much of the lease is left, the second
-- how long the token is kept ('0', for ever, if the waiter requests that).
--@define left_of_hand math.min(hand,hand-math.floor(now/1000)+seen)
--@define keep_of_hand string.find(about,'^%d+k') and '0' or math.max(86400000,10*hand)

-- Whether Redisson's waiters are in the fair queue. If so, deadlines follow
-- Redisson's rule: the deadline of each waiter is $wait ms after that of the
-- waiter before it, and a waiter that leaves lowers the deadlines of all
-- waiters after it by $wait.
--@define redisson_queues redis.call('llen',Q)>redis.call('hlen',S)
--@define wait 300000

-- Whether the queue is empty, and the caller does not wait either. If so, the
-- script takes a shorter path, without creating functions.
--@define no_line ARGV.queue~='2' and redis.call('exists',L)==0

-- The holder of the permit `id`: the owner if it is a holdfast client,
-- otherwise the id in hexadecimal, because the id of a Redisson permit may
-- contain any bytes.
--@define permit_owner string.match(id,'^(%x+%-%x+%-%x+%-%x+%-%x+:%d+):%d+$')
--@define permit_hex string.gsub(id,'.',function(...)
--@      return string.format('%02x',string.byte(...)) end)
