"""What a board does in one step on the server, in Lua.

A number goes into a command as a number, with all its digits, or as the text that the server gave
or that %.17g makes; Lua's own way of writing one keeps 14 digits. A packed score is
``points x unit + rest``, all whole; unit 0 says that scores are plain points.
"""

# Rows from one place to another, or from so many above a player to so many below. Replies nil
# without that player, else the place of the first row, its rank, the size of the board, the rows.
ROWS = """
local ties, unit, from, to = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local size = redis.call('ZCARD', KEYS[1])
if ARGV[6] then
  local place = redis.call('ZREVRANK', KEYS[1], ARGV[6])
  if not place then return false end
  local wide, first = to - from, place + from
  if ARGV[5] == 'fill' then first = math.max(0, math.min(first, size - 1 - wide)) end
  from, to = math.max(0, first), first + wide
end
local rows, rank = redis.call('ZREVRANGE', KEYS[1], from, to, 'WITHSCORES'), from + 1
if rows[2] and ties ~= 'ordinal' then
  local function beyond(score, more)  -- a bound that leaves out all who have these points
    if unit == 0 then return '(' .. score end
    return string.format('(%.17g', tonumber(score) - math.fmod(tonumber(score), unit) + more)
  end
  local above, top, row = beyond(rows[2], unit - 1), '+inf', nil
  rank = 1
  if ties == 'competition' then rank = redis.call('ZCOUNT', KEYS[1], above, '+inf') + 1 end
  while ties == 'dense' do
    row = redis.call('ZREVRANGEBYSCORE', KEYS[1], top, above, 'WITHSCORES', 'LIMIT', 0, 1)
    if not row[2] then break end
    rank, top = rank + 1, beyond(row[2], 0)
  end
end
return {from, rank, size, rows}
"""

# KEYS: board, ids, and, where a rebuild may be at work: its board, its ids, its mark. Of an event
# that the rebuild itself replays: its board, its ids, its mark, and ARGV[10], the mark it set.
# Replies 1 (counted), 0 (was counted before, or its board is over), -1 (the total is out of range:
# nothing is written).
SUBMIT = """
local event, player, keep, ends = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local more, fresh, rest = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local unit, most = tonumber(ARGV[8]), tonumber(ARGV[9])
local function write(board, ids)
  if redis.call('SISMEMBER', ids, event) == 1 then return 0 end
  local old = tonumber(redis.call('ZSCORE', board, player) or nil)
  local points, reached = fresh, rest
  if old and keep == 'sum' then
    local before = math.fmod(old, unit)
    points, reached = (old - before) / unit + more, math.min(rest, before)
  end
  if points > most then return -1 end
  local score = points * unit + reached
  if keep == 'sum' or not old or score > old then redis.call('ZADD', board, score, player) end
  redis.call('SADD', ids, event)
  if ends ~= '' then
    redis.call('PEXPIREAT', board, ends)
    redis.call('PEXPIREAT', ids, ends)
  end
  return redis.call('EXISTS', board)  -- 0 after a deadline in the past
end
if ARGV[10] and redis.call('GET', KEYS[3]) ~= ARGV[10] then return 0 end  -- taken for dead
local counted = write(KEYS[1], KEYS[2])
if counted >= 0 and KEYS[5] and redis.call('EXISTS', KEYS[5]) == 1 then
  -- A new board without this event must not become the live one.
  if write(KEYS[3], KEYS[4]) < 0 then redis.call('UNLINK', KEYS[5]) end
end
return counted
"""

# Replies how many went.
TRIM = """
local unit, last = tonumber(ARGV[2]), ARGV[1] - 1
local row = redis.call('ZREVRANGE', KEYS[1], last, last, 'WITHSCORES')
if not row[2] then return 0 end
if ARGV[3] == 'cut' then return redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -2 - last) end
local edge = '(' .. row[2]
if unit > 0 then
  edge = string.format('(%.17g', tonumber(row[2]) - math.fmod(tonumber(row[2]), unit))
end
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', edge)
"""

# A step of a rebuild: begin, go on, end, give up. Replies 0 to one who does not hold the mark. Any
# may come twice: when its reply was lost, the client sends it again.
STEP = """
local step, mark, holder = ARGV[1], ARGV[2], redis.call('GET', KEYS[5])
if step == 'begin' and not holder then holder = mark end
if holder ~= mark then
  if not holder then redis.call('UNLINK', KEYS[3], KEYS[4]) end  -- of a rebuild that is dead
  return 0
end
if step ~= 'go on' and step ~= 'end' then redis.call('UNLINK', KEYS[3], KEYS[4]) end
if step == 'begin' or step == 'go on' then
  redis.call('SET', KEYS[5], mark, 'PX', ARGV[3])
  return 1
end
for n = 1, step == 'end' and 2 or 0 do
  redis.call('UNLINK', KEYS[n])
  if redis.call('EXISTS', KEYS[n + 2]) == 1 then redis.call('RENAME', KEYS[n + 2], KEYS[n]) end
end
return redis.call('UNLINK', KEYS[5])
"""
