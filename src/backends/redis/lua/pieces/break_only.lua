-- Ends the script if the hold of a mutex is not the one to break. `has` is an
-- expression that says whether the owner `o` holds the mutex. The token of the
-- hold is read from KEYS.info, because the counter of tokens may have expired.
-- Older versions of holdfast wrote no token to KEYS.info; then the counter is
-- read.
--@takes has
--@needs TOKEN
if ARGV.token~='0' or ARGV.owner~='' then
  local ours=redis.call('get',KEYS.info) or ''
  local o=string.match(ours,'^[^\n]*')
  local known=$has
  local n=known and string.match(ours,'^[^\n]*\n[^\n]*\n%d+ (%d+)') or
    redis.call('get',TOKEN) or ''
  if ARGV.owner~='' then o=ARGV.owner end
  if not ($has) or ARGV.token~='0' and ARGV.token~=n then
    return known and n or ''
  end
end
