-- Notifies the client of the owner w that its hold with the token n was
-- broken. `about` is what the client has said about itself; nil: it is not a
-- holdfast client.
--@needs about n w
if about then
  redis.pcall('publish',$wake_channel,'b'..string.sub(w,38)..' '..n)
end
