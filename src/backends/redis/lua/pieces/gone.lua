-- Tells the client of the owner w that its hold with the token n was taken
-- away. `about` is what it has said of itself; nil: it is none of ours.
--@needs about n w
if about then
  redis.pcall('publish',$wake_channel,'b'..string.sub(w,38)..' '..n)
end
