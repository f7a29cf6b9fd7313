-- KEYS[1]: prefix{name}   ARGV: amount, interval in ms
-- Returns the running interval's number, and the total of the one before.
local time = redis.call('TIME')
local n = math.floor((time[1] * 1000 + math.floor(time[2] / 1000)) / ARGV[2])
local key = KEYS[1] .. ':' .. string.format('%d', n)
redis.call('INCRBY', key, ARGV[1])
redis.call('PEXPIRE', key, 3 * ARGV[2])
return { n, redis.call('GET', KEYS[1] .. ':' .. string.format('%d', n - 1)) }
