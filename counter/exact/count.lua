-- What the scripts share but add.lua, which is written to be fast.
-- Counts are decimal strings from 0 to 2^63-1: Lua's numbers are exact only to 2^53.

local function at_most(a, b)
  if #a ~= #b then return #a < #b end
  return a <= b
end

local function sum(a, b)
  if #a < 16 and #b < 16 then return string.format('%.0f', a + b) end
  -- With base 10 leading zeros are no octal numbers to any Lua.
  local low = tonumber(string.sub(a, -15), 10) + tonumber(string.sub(b, -15), 10)
  local high = (tonumber(string.sub(a, 1, -16), 10) or 0) + (tonumber(string.sub(b, 1, -16), 10) or 0)
  if low >= 1e15 then low, high = low - 1e15, high + 1 end
  return string.format('%.0f%015.0f', high, low)
end

-- A wrong type raises an error, a wrong value is a second result.
local function read(key)
  local count = redis.call('GET', key) or '0'
  if #count > 19 or not string.find(count, '^%d+$') then
    return nil, redis.error_reply('NOCOUNT the key holds something else')
  end
  return count
end

-- One command, so that no crash and no error leaves a count without its TTL. A key
-- that never had one, as one made without a TTL, gets it here.
local function write(key, count, ttl, left)
  if ttl ~= '0' and left < 0 then
    return redis.pcall('SET', key, count, 'PX', ttl)
  end
  return redis.pcall('SET', key, count, 'KEEPTTL')
end

local function failed(reply)
  return type(reply) == 'table' and reply.err
end
