-- KEYS: count, and a writer's marker if there is one.
-- Answers "count COUNT TTL MARK".

local mark = KEYS[2] and redis.call('GET', KEYS[2]) or '0'
local count, wrong = read(KEYS[1])
return wrong or string.format('count %s %.0f %s', count, redis.call('PTTL', KEYS[1]), mark)
