-- Notifies the client of the owner w that its hold with the token n was
-- broken. `about` is what that client says about itself; nil if it is no
-- holdfast client, which is not notified.
--@needs about n w
if about then
  redis.pcall('publish',$wake_channel,'b'..string.sub(w,38)..' '..n)
end
