"""What the shop does in one step on the server, in Lua.

All keys of a call have one hash tag. A script reads every key that it will write before it writes
the first one: a key of another type, a full memory or a read-only replica ends it with nothing
done. Its first write (INCR, ZUNIONSTORE) is one that a full memory refuses.

Nothing is undone when a later write is refused, and an order whose record stands would be answered
though half of it is missing. So RECORD also asks before its first write whether this user may do
every write, with these keys: rights can change while the service runs. It costs 5 of the 24 us that
an order takes the server. Redis 6.2 cannot be asked: there, give the user all of these commands.
"""

# KEYS: record of the Idempotency-Key, sales of the day, recent orders, players, number of orders.
# ARGV: digest of the body, this request, ms now, isbn, copies, customer, points,
#       most copies, most points, ms a record is kept, s a day is kept, ms a recent order is kept.
# Replies what happened (new, replayed, other body, too many) and the order's number.
RECORD = """
local body, request, now, isbn, copies = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local customer, points, kept = ARGV[6], ARGV[7], ARGV[12]
local was = redis.call('GET', KEYS[1])
if was then
  local order, its_body, its_request = string.match(was, '^(%d+) (%x+) (%x+)$')
  if its_body ~= body then return {'other body'} end
  -- A command that redis-py has sent twice: whoever asked, asked once.
  return {its_request == request and 'new' or 'replayed', tonumber(order)}
end
redis.call('ZCARD', KEYS[3])
local sold = tonumber(redis.call('ZSCORE', KEYS[2], isbn) or 0)
local held = tonumber(redis.call('ZSCORE', KEYS[4], customer) or 0)
local endless = redis.call('TTL', KEYS[2]) < 0
if sold + copies > tonumber(ARGV[8]) or held + points > tonumber(ARGV[9]) then
  return {'too many'}
end
for _, write in ipairs(redis.acl_check_cmd and {
  {'SET', KEYS[1], '', 'PX', 1}, {'ZINCRBY', KEYS[2], 1, isbn}, {'EXPIRE', KEYS[2], 1},
  {'ZADD', KEYS[3], 1, 1}, {'ZREMRANGEBYSCORE', KEYS[3], 0, 0}, {'PEXPIRE', KEYS[3], 1},
  {'ZINCRBY', KEYS[4], 1, customer},
} or {}) do  -- INCR is the first write: it is refused in time
  if not redis.acl_check_cmd(unpack(write)) then
    return redis.error_reply('NOPERM this user may not ' .. write[1] .. ' everywhere')
  end
end
local order = redis.call('INCR', KEYS[5])
local record = string.format('%d %s %s', order, body, request)
redis.call('SET', KEYS[1], record, 'PX', ARGV[10])
redis.call('ZINCRBY', KEYS[2], copies, isbn)
if endless then redis.call('EXPIRE', KEYS[2], ARGV[11]) end
redis.call('ZADD', KEYS[3], now, order)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.17g', now - kept))
redis.call('PEXPIRE', KEYS[3], kept)
redis.call('ZINCRBY', KEYS[4], points, customer)
return {'new', order}
"""

# KEYS: sales of a day. ARGV: how many rows, then either a place (from 0) or a score and a member,
# which stand for the first place after this pair in ZREVRANGE's order.
# Replies the first place and the rows.
TODAY = """
local function below(a, b)  -- by bytes; Lua's own < asks the server's locale
  for n = 1, math.min(#a, #b) do
    local x, y = string.byte(a, n), string.byte(b, n)
    if x ~= y then return x < y end
  end
  return #a < #b
end
local from, score, member = tonumber(ARGV[2]), ARGV[2], ARGV[3]
if member then
  -- Whether the member still has this score or not: its place among those who have it.
  from = redis.call('ZCOUNT', KEYS[1], '(' .. score, '+inf')
  local after = redis.call('ZCOUNT', KEYS[1], score, '+inf')
  while from < after do
    local middle = math.floor((from + after) / 2)
    local other = redis.call('ZREVRANGE', KEYS[1], middle, middle)[1]
    if below(other, member) then after = middle else from = middle + 1 end
  end
end
return {from, redis.call('ZREVRANGE', KEYS[1], from, from + ARGV[1] - 1, 'WITHSCORES')}
"""

# KEYS: the snapshot, its name, and seven days of sales.
# ARGV: s it is kept, a name if it must be built, the name that is asked for ('' for any),
#       first place, how many rows.
# Replies the snapshot's name, its size, the ms that it is still there, the rows; nil when the
# snapshot that is asked for has ended. It needs no temporary key: the days with sales are counted
# in the snapshot's own key, and the second union takes that key as one of its sources.
WEEK = """
local week, days = KEYS[1], {unpack(KEYS, 3)}
local name = redis.call('EXISTS', week) == 1 and redis.call('GET', KEYS[2])
if ARGV[3] ~= '' then
  if name ~= ARGV[3] then return false end
elseif not name then
  name = ARGV[2]
  local count = {week, #days, unpack(days)}
  count[#count + 1], count[#count + 2] = 'AGGREGATE', 'COUNT'
  local counted = redis.pcall('ZUNIONSTORE', unpack(count))
  if type(counted) == 'table' then
    if not string.find(counted.err, 'syntax') then return counted end
    local seen, pairs_ = {}, {}  -- a server without COUNT
    for _, day in ipairs(days) do
      for _, isbn in ipairs(redis.call('ZRANGE', day, 0, -1)) do
        seen[isbn] = (seen[isbn] or 0) + 1
      end
    end
    redis.call('UNLINK', week)
    for isbn, number in pairs(seen) do
      pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = number, isbn
      if #pairs_ == 2000 then redis.call('ZADD', week, unpack(pairs_)); pairs_ = {} end
    end
    if pairs_[1] then redis.call('ZADD', week, unpack(pairs_)) end
  end
  local sum = {week, #days + 1, unpack(days)}
  sum[#sum + 1], sum[#sum + 2] = week, 'WEIGHTS'
  for _ = 1, #days do sum[#sum + 1] = 10 end
  sum[#sum + 1] = 1
  if redis.call('ZUNIONSTORE', unpack(sum)) > 0 then
    redis.call('EXPIRE', week, ARGV[1])
    redis.call('SET', KEYS[2], name, 'EX', ARGV[1])
  end
end
local rows = redis.call('ZREVRANGE', week, ARGV[4], ARGV[4] + ARGV[5] - 1, 'WITHSCORES')
return {name, redis.call('ZCARD', week), redis.call('PTTL', week), rows}
"""
