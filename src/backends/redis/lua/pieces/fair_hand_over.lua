-- Gives the lock to the first fair waiter, and sets `given`, if that waiter is
-- a holdfast client, listens, and has polled within the last seconds. Otherwise
-- notifies the waiter to try.
--@needs TOKEN drop given head lower now tell
while true do
  local w,til,seen,ear,hand,about=head()
  if not w then break end
  local to=til and $wake_channel
  local s=til and redis.pcall('pubsub','numsub',to)
  if not til or hand=='0' or s.err or $not_seen_lately then
    tell()
    break
  end
  --@include token_mint.lua
  local heard=s[2]>0 and (tonumber(redis.pcall('publish',to,'f'..string.sub(w,38)..
    string.format(' %.0f ',n)..seen..' '..KEYS.lock)) or -1) or 0
  given=heard>0
  if given then
    drop(w)
    lower()
    --@include give_to_w.lua kind="f"; lock=hold_hash.lua
    break
  end
  if heard<0 or ear=='0' then break end
  drop(w)
end
