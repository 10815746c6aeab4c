-- call() notifies the waiters that may have the lock now: adjacent readers, or
-- one writer. `mode` is the current mode of the lock, or false if it is free.
--@needs forget tell walk
--@defines call
local function call(mode)
  if mode=='write' then return end
  local read=mode=='read'
  walk(function(w,til,seen,ear,fair,want,...)
    if want=='w' and read then return fair=='1' and 2 or nil end
    if w==ARGV.owner then return want=='w' and 2 or nil end
    local told,what=tell(w,til,seen,ear,fair,want,...)
    if told and want=='w' then
      if what==1 then forget(w) end
      return 2
    end
    read=read or told
    return what
  end)
end
