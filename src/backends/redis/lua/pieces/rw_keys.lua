-- Begins the scripts that release a read-write lock. KEY is the timeout key of
-- the caller's read hold.
--@defines BASE CH KEY L MARK P TOKEN alone ears
local TOKEN,L,P,CH,MARK,BASE=KEYS.token,KEYS.line,KEYS.party,ARGV.channel,ARGV.mark,
  ARGV.base
local ears,alone
local KEY=BASE..':'..ARGV.owner..':rwlock_timeout:1'
