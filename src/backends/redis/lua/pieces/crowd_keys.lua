-- Names the keys of unfair waiters, and the counter of tokens. W is the list
-- of waiters in order of arrival. C is a hash, owner -> "until seen hand_ms
-- about". A waiter in W that is not in C has left.
--@defines C TOKEN W
local W,TOKEN,C=KEYS.waiters,KEYS.token,KEYS.crowd
