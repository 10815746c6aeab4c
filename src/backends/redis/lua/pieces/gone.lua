-- Notifies the client of the owner w that its hold with the token n was broken.
-- `about` is the description of that client, or nil if it is not a holdfast
-- client, which cannot be notified.
--@needs about n w
if about then
  redis.pcall('publish',$wake_channel,'b'..string.sub(w,38)..' '..n)
end
