-- KEYS: count, and the id if there is one.
-- ARGV: n, room (how high a count may be so that n fits; empty if it never does),
-- ttl in ms (0: none), and for AddUpTo the limit, else empty; with an id also its
-- life in ms, and 1 if a repeat shall write the id again, so that a WAIT after it
-- covers the first add.
-- Answers "added OLD NEW", "full COUNT TTL" or "reused COUNT".
--
-- Counts are decimal strings, for Lua's numbers are exact only to 2^53. There are no
-- functions, for Redis would make them anew in each call.

local n, room, ttl, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local id = KEYS[2]

local old = redis.call('GET', KEYS[1]) or '0'
if #old > 19 or not string.find(old, '^%d+$') then
  return redis.error_reply('NOCOUNT the key holds something else')
end

-- The id holds "KIND N OLD NEW". It is empty for the millisecond after an add that
-- was taken back.
local kind = limit and limit ~= '' and 'upto' or 'add'
local done = id and redis.call('GET', id)
if done and done ~= '' then
  local was, amount, result = string.match(done, '^(%a+) (%d+) (%d+ %d+)$')
  if not was then
    return redis.error_reply('NOCOUNT the key of the id holds something else')
  end
  if was ~= kind or amount ~= n then return 'reused ' .. old end
  if ARGV[6] == '1' then redis.call('SET', id, done, 'KEEPTTL') end
  return 'added ' .. result
end

local new
if #old < #room or #old == #room and old <= room then
  if #old < 16 and #n < 16 then
    new = string.format('%.0f', old + n)
  else
    -- With base 10 leading zeros are no octal numbers to any Lua.
    local low = tonumber(string.sub(old, -15), 10) + tonumber(string.sub(n, -15), 10)
    local high = (tonumber(string.sub(old, 1, -16), 10) or 0) + (tonumber(string.sub(n, 1, -16), 10) or 0)
    if low >= 1e15 then low, high = low - 1e15, high + 1 end
    new = string.format('%.0f%015.0f', high, low)
  end
elseif kind == 'upto' and (#old < #limit or #old == #limit and old < limit) then
  new = limit
else
  return string.format('full %s %.0f', old, redis.call('PTTL', KEYS[1]))
end

-- The id first: once it is written nothing but a missing right can refuse the
-- count, and taking the id back needs no right that writing it did not.
local result = old .. ' ' .. new
if id then
  redis.call('SET', id, kind .. ' ' .. n .. ' ' .. result, 'PX', ARGV[5])
end

-- One command, so that no error and no crash leaves a count without its TTL. A key
-- that never had one, as one made without a TTL, gets it here.
local wrote
if ttl ~= '0' and redis.call('PTTL', KEYS[1]) < 0 then
  wrote = redis.pcall('SET', KEYS[1], new, 'PX', ttl)
else
  wrote = redis.pcall('SET', KEYS[1], new, 'KEEPTTL')
end
if type(wrote) == 'table' and wrote.err then
  if id then redis.call('SET', id, '', 'PX', '1') end
  return wrote
end
return 'added ' .. result
