-- call() notifies the waiters for which `v` free permits suffice; if v is nil,
-- all permits are free. ARGV[7] is `fair` of a TAKE; the other scripts have no
-- such argument, and their caller does not wait.
--@needs forget tell walk
--@defines call
local function call(v)
  if v and v<1 then return end
  walk(function(w,til,seen,ear,fair,want,hand,size,...)
    v=v or tonumber(size)
    if w==ARGV.owner then return ARGV[7]=='1' and 2 or nil end
    if tonumber(want)>v then return fair=='1' and 2 or nil end
    local told,what=tell(w,til,seen,ear,fair,want,hand,size,...)
    if told then v=v-want end
    if v<1 then
      if what==1 then forget(w) end
      return 2
    end
    return what
  end)
end
