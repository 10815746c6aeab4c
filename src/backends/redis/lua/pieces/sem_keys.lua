-- Begins the scripts that release a semaphore.
--@defines CH KIND L MARK P TOKEN Z alone ears
local TOKEN,L,P,Z,KIND,CH,MARK=KEYS.token,KEYS.line,KEYS.party,KEYS.permits,KEYS.kind,
  ARGV.channel,ARGV.mark
local ears,alone
