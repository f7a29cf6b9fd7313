-- Adds what one participant counted to the group's totals, and reads the totals.
-- Redis 6.0 and later. The rules named here are those of DESIGN.md, section 2.
--
-- One call holds many shares, each of one counter: without a cluster of many
-- counters, in a cluster of one. Each stands for itself: none fails another.
--
-- KEYS, for each share:
--   prefix{name}:N    prefix{name}:N:by      of the declared interval N
--   the same of N-1
--   the same of N-2                          only in mode 'ahead'
--   prefix{name}:M:by                        for each question
--
-- ARGV: the interval in milliseconds, the participant's id, then for each share
--   'mode batch N seq amount series questions'
--             mode: add, first (add, and ask who was first), ahead, read
--             the others are numbers; the last two say how many there are
--   the amounts of the series, joined by spaces, and then
--   each series' field                       only with series
--   'M seq' of each question, joined by spaces    only with questions
--
-- The answer: the server's time in microseconds, then a string for each share
--   'applied closed open first answers participants series...'   or 'repeated ...'
--             closed, open: the totals of intervals n-1 and n, '-' if not known
--             first: 1 or 0
--             answers: a letter for each question, or '-':
--             c counted, n not counted, o open, u unknowable
--             the rest are counts of interval n-1, only where closed is known
--   and in a line of its own for each series that failed: 'its number from 0' why
--   'refused', 'used', 'fenced', 'late'
--   'failed' why      nothing was changed
--   'lost' why        something was changed and could not be taken back
--
-- Amounts, totals and counts are int64 and stay strings: a Lua number is exact
-- only up to 2^53. Times, intervals and sequence numbers stay below that.
--
-- Without ARGV the call is a probe, see the end.

-- Rule 1: one reading of the server's clock decides all. Rule 3: every call is a
-- pcall, for an error that stops the script leaves half of its work behind.
local time = redis.pcall('TIME')

-- failure returns why a redis.pcall failed, in one line, else nil.
local function failure(reply)
  if type(reply) ~= 'table' or not reply.err then
    return nil
  end
  local why = string.gsub(reply.err, '^@user_script: ?%d+: %-?', '') -- Redis 6
  why = string.gsub(why, '%s+', ' ')
  return (string.gsub(why, ' $', ''))
end

if failure(time) then
  return {err = failure(time) .. ': TIME'}
end
local seconds, micros = tonumber(time[1]), tonumber(time[2])
local clock = string.format('%.0f', seconds * 1000000 + micros)
local ms = seconds * 1000 + math.floor(micros / 1000)

-- Whole-server refusals. Where nothing could be written they are the answer to the
-- whole call, so that clients see a replica for what it is.
local whole = {READONLY = true, OOM = true, MISCONF = true, NOREPLICAS = true, MASTERDOWN = true}

local function refusesAll(why)
  return whole[string.match(why, '^%u+')]
end

-- Without shares, a probe: tries on KEYS, a total and a hash, every right that a
-- flush needs, in ways that fail before they write. Answers the time and the
-- commands that are not permitted.
if #ARGV == 0 then
  local total, hash = KEYS[1], KEYS[2]
  local denied = {}
  for _, try in ipairs({
    {'GET', total}, {'INCRBY', total, 'x'}, {'PEXPIRE', total, 'x'},
    {'HGET', hash, 'f'}, {'HMGET', hash, 'f'}, {'HINCRBY', hash, 'f', 'x'}, {'HSET', hash, 'f', 'v', 'x'},
  }) do
    local why = failure(redis.pcall(unpack(try))) or ''
    if refusesAll(why) then
      return {err = why}
    end
    if string.find(why, '^NOPERM') or string.find(why, 'The user executing the script') or
      string.find(why, 'ACL failure in script') or string.find(why, 'Unknown Redis command') then
      denied[#denied + 1] = try[1]
    end
  end
  return {clock, table.concat(denied, ' ')}
end

local interval, id = tonumber(ARGV[1]), ARGV[2]
local n = math.floor(ms / interval) -- the running interval
local slack = math.min(interval / 4, 500)

local written = false -- whether this call has written anything
local stopped = nil   -- why the server takes no writes, met before anything was written

-- write does a writing command and returns why it failed, else nil.
local function write(...)
  local why = failure(redis.pcall(...))
  if not why then
    written = true
  elseif not written and refusesAll(why) then
    stopped = why
  end
  return why
end

-- expire sets a key's life, one interval longer where the declared interval has
-- not begun. Never less than a second.
local function expire(key, intervals, share)
  if share and share.N > n then
    intervals = intervals + 1
  end
  return write('PEXPIRE', key, string.format('%.0f', math.max(intervals * interval, 1000)))
end

-- integer returns a value that is one, else '-'.
local function integer(value)
  if type(value) == 'string' and string.find(value, '^%-?%d+$') then
    return value
  end
  return '-'
end

local function negated(amount)
  if amount == '0' then
    return amount
  end
  return string.sub(amount, 1, 1) == '-' and string.sub(amount, 2) or '-' .. amount
end

-- key returns a share's total (which = 0) or hash (which = 1) of interval i, or
-- nil if it was not declared.
local function key(share, i, which)
  local back = share.N - i
  if back < 0 or back > share.depth then
    return nil
  end
  return KEYS[share.key + 2 * back + which]
end

-- apply adds a share (rule 3): the total, the mark, then the series. Returns nil,
-- or an outcome that is not 'applied'.
local function apply(share)
  local total, hash = key(share, share.N, 0), key(share, share.N, 1)
  local why = write('INCRBY', total, share.amount)
  if why then
    return 'failed ' .. why
  end
  why = expire(total, 3, share)
  local marked = false
  if not why then
    why = write('HSET', hash, share.mark, share.seq)
    marked = not why
  end
  if not why then
    why = expire(hash, 4, share)
  end
  if why then -- take all back; a fence takes the place of the mark
    local left = write('INCRBY', total, negated(share.amount))
    if marked then
      left = write('HSET', hash, share.mark, '-' .. share.seq) or left
    end
    return (left and 'lost ' or 'failed ') .. why
  end

  if share.batch == '0' then
    write('HINCRBY', hash, '#', '1')
  end
  local i = 0
  for amount in string.gmatch(share.amounts, '%S+') do
    if amount ~= '0' then
      why = write('HINCRBY', hash, ARGV[share.fields + i], amount)
      if why then -- leave this series out
        if write('INCRBY', total, negated(amount)) then
          return 'lost ' .. why
        end
        share.failed = share.failed .. '\n' .. i .. ' ' .. why
      end
    end
    i = i + 1
  end
  return nil
end

-- refuse answers a share whose interval is not the running one. The refusal is its
-- own fence (rule 2): whatever is repeated later, this share is never applied.
local function refuse(share)
  local hash = key(share, share.N, 1)
  local why = write('HSET', hash, share.mark, '-' .. share.seq)
  if why then
    return 'failed ' .. why
  end
  why = expire(hash, 4, share)
  if why then
    return 'failed ' .. why
  end
  return 'refused'
end

-- first answers whether this participant was the first of those that ask (rule 12).
local function first(share)
  if share.mode ~= 'first' then
    return '0'
  end
  local hash = key(share, share.N, 1)
  local who = redis.pcall('HGET', hash, '!')
  if who == id or (who == false and not write('HSET', hash, '!', id)) then
    return '1'
  end
  return '0'
end

-- answer answers whether the share with interval M and this sequence number was
-- counted (rule 5).
local function answer(hash, mark, M, seq)
  if ms < (M + 1) * interval + slack then
    return 'o'
  end
  local value = redis.pcall('HGET', hash, mark)
  local m = not failure(value) and tonumber(value or 0) -- false if it is not readable
  if m == seq then
    return 'c'
  elseif n > M + 2 then
    return 'u' -- the mark may have expired
  elseif not m then
    return 'o'
  elseif m > 0 or -m >= seq then
    return 'n'
  end
  -- Never applied. The fence keeps it so.
  if write('HSET', hash, mark, string.format('-%.0f', seq)) or expire(hash, 4) then
    return 'o'
  end
  return 'n'
end

local function answers(share)
  local letters, at = '', share.key + 2 * share.depth + 2
  for M, seq in string.gmatch(share.questions, '(%d+) (%d+)') do
    letters = letters .. answer(KEYS[at], share.mark, tonumber(M), tonumber(seq))
    at = at + 1
  end
  return letters ~= '' and letters or '-'
end

-- read returns what a participant learns (outcome and all): the totals by the
-- server's clock, as far as their keys were declared.
local function read(share, outcome, isFirst, letters)
  local total, hash = key(share, n - 1, 0), key(share, n - 1, 1)
  local closed = total and integer(redis.pcall('GET', total)) or '-'
  local running = key(share, n, 0)
  local open = running and integer(redis.pcall('GET', running)) or '-'
  local answered = table.concat({outcome, closed, open, isFirst, letters}, ' ')
  if closed ~= '-' then
    local parts = redis.pcall('HMGET', hash, '#', unpack(ARGV, share.fields, share.fields + share.series - 1))
    local readable = not failure(parts)
    for i = 1, share.series + 1 do
      parts[i] = integer(readable and parts[i])
    end
    answered = answered .. ' ' .. table.concat(parts, ' ', 1, share.series + 1)
  end
  return answered .. share.failed
end

-- flush does one share and returns its answer, and whether it may have been
-- applied before.
local function flush(share)
  if share.mode == 'read' then
    if share.N ~= n then
      return 'late'
    end
    return read(share, 'applied', '0', '-')
  end

  -- Rule 2: the mark decides before the clock does.
  local value = redis.pcall('HGET', key(share, share.N, 1), share.mark)
  if failure(value) then
    return 'failed ' .. failure(value)
  end
  local m, seq = tonumber(value or 0), tonumber(share.seq)
  local outcome = 'applied'
  if not m then
    return 'failed ERR the mark is not a number'
  elseif m == seq then
    outcome = 'repeated'
  elseif m > 0 then
    return 'used'
  elseif m < 0 and -m >= seq then
    return 'fenced'
  elseif share.N == n or (share.mode == 'ahead' and share.N == n + 1) then
    local other = apply(share)
    if other then
      return other
    end
  elseif n > share.N + 1 then
    return 'late', true
  else
    return refuse(share)
  end
  return read(share, outcome, first(share), answers(share)), outcome == 'repeated'
end

local reply = {clock}
local k, a = 1, 3 -- the next share's place in KEYS and ARGV
local doubt = false
while ARGV[a] do
  local mode, batch, N, seq, amount, series, questions =
    string.match(ARGV[a], '^(%l+) (%d+) (%d+) (%d+) (%-?%d+) (%d+) (%d+)$')
  local share = {
    mode = mode, batch = batch, N = tonumber(N), seq = seq, amount = amount,
    series = tonumber(series), amounts = '', fields = a + 2, questions = '',
    mark = '@' .. id .. '.' .. batch,
    key = k, depth = mode == 'ahead' and 2 or 1,
    failed = '',
  }
  a = a + 1
  if share.series > 0 then
    share.amounts = ARGV[a]
    a = a + 1 + share.series
  end
  if questions ~= '0' then
    share.questions = ARGV[a]
    a = a + 1
  end
  k = k + 2 * share.depth + 2 + tonumber(questions)

  local answered, before = flush(share)
  doubt = doubt or before
  reply[#reply + 1] = answered
end
if stopped and not written and not doubt then
  return {err = stopped} -- all shares are proven not applied
end
return reply
