-- KEYS: count, marker of the writer.
-- ARGV: n, room (2^63-1 - n), ttl in ms (0: none), seq, life of the marker in ms.
-- Answers "added COUNT TTL", "repeated COUNT TTL" or "full COUNT TTL".
-- The marker holds the highest seq of its writer that is decided.

local n, room, ttl, seq, life = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local mark = redis.call('GET', KEYS[2])
local count, wrong = read(KEYS[1])
if wrong then return wrong end
local left = redis.call('PTTL', KEYS[1])

local answer = 'added'
if mark and at_most(seq, mark) then
  answer = 'repeated'
elseif not at_most(count, room) then
  answer = 'full'
else
  redis.call('SET', KEYS[2], seq, 'PX', life)
  count = sum(count, n)
  local wrote = write(KEYS[1], count, ttl, left)
  if failed(wrote) then
    redis.call('SET', KEYS[2], mark or '0', 'PX', life)
    return wrote
  end
  if ttl ~= '0' and left < 0 then left = tonumber(ttl) end
end
return string.format('%s %s %.0f', answer, count, left)
