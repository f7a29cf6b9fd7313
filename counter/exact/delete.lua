-- KEYS: count, marker of the writer.
-- ARGV: seq, life of the marker in ms.
-- Answers "deleted 0" or "deleted 1". Batches with a lower seq are not added
-- afterwards.

local mark = redis.call('GET', KEYS[2])
if not (mark and at_most(ARGV[1], mark)) then
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
end
local gone = redis.pcall('DEL', KEYS[1])
if failed(gone) then
  redis.call('SET', KEYS[2], mark or '0', 'PX', ARGV[2])
  return gone
end
return 'deleted ' .. gone
