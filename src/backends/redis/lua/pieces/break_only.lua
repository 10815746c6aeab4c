-- Ends the script if the holder of a mutex is not the one that is meant. `has`
-- says whether the owner `o` holds it.
--@takes has
--@needs TOKEN
if ARGV.token~='0' or ARGV.owner~='' then
  local ours=string.match(redis.call('get',KEYS.info) or '','^[^\n]*')
  local o,n=ours,redis.call('get',TOKEN) or ''
  local known=$has
  if ARGV.owner~='' then o=ARGV.owner end
  if not ($has) or ARGV.token~='0' and ARGV.token~=n then
    return known and n or ''
  end
end
