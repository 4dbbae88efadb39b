-- Draw one token from each of some buckets, or from none of them.
--
-- The arithmetic is core/limits.py's in doubles: capacity is at most 10^6 and refill at most
-- 3.6 * 10^9 an hour, so every product below stays under 2^53 and is exact. `now` is set above.
--
-- KEYS: the buckets, all with one hash tag.
-- ARGV: 1 '1' to make buckets that are not there (from what the caller knows of them), '0' not to,
--       or 'look' to change nothing at all; then for each bucket six numbers: capacity, refill per hour, and what the caller last saw:
--       the epoch, level, fraction and age in microseconds (level -1: it has seen nothing).
-- Gives {1 drawn, 0 denied or -1 not there, now, then level, fraction and epoch of each bucket};
-- of a bucket that is not there the level is -1. When one is not there, nothing was changed.
--
-- An epoch is the instant at which a bucket was made here. Seeing another one than before, a caller
-- knows more of the past than the bucket, which may have been made by one that knew less: the
-- lower of the two levels holds.

local HOUR_US = 3600000000
local IDLE_MS = 3600000

local function filled(level, fraction, elapsed, capacity, refill)
  if elapsed > 0 and level < capacity then
    local missing = (capacity - level) * HOUR_US - fraction
    if elapsed > missing / refill + 1 then
      return capacity, 0
    end
    local gained = fraction + refill * elapsed
    fraction = math.fmod(gained, HOUR_US)
    level = level + (gained - fraction) / HOUR_US
  end
  if level >= capacity then
    return capacity, 0
  end
  return level, fraction
end

local function whole(number)
  return string.format('%.0f', number)
end

local may_make = ARGV[1] == '1'
local looks_only = ARGV[1] == 'look'
local buckets = {}
local state = 1

for i, key in ipairs(KEYS) do
  local first = 2 + (i - 1) * 6
  local capacity, refill = tonumber(ARGV[first]), tonumber(ARGV[first + 1])
  local seen_epoch, seen_level = ARGV[first + 2], tonumber(ARGV[first + 3])
  local seen_fraction, seen_age = tonumber(ARGV[first + 4]), tonumber(ARGV[first + 5])
  local kept = redis.call('HMGET', key, 'level', 'fraction', 'at', 'capacity', 'refill', 'epoch')
  local level, fraction, epoch = tonumber(kept[1] or '-1'), 0, kept[6] or ''
  if level >= 0 then
    -- Time that went back (another machine took over) stands still; it does not freeze the bucket.
    local elapsed = now - tonumber(kept[3])
    level, fraction =
      filled(level, tonumber(kept[2]), elapsed, tonumber(kept[4]), tonumber(kept[5]))
  end
  if seen_level >= 0 and (level >= 0 and epoch ~= seen_epoch or level < 0 and may_make) then
    local known, rest = filled(seen_level, seen_fraction, seen_age, capacity, refill)
    if level < 0 then
      level, fraction, epoch = known, rest, whole(now)
    elseif known < level or known == level and rest < fraction then
      level, fraction = known, rest
    end
  end
  if level >= capacity then
    level, fraction = capacity, 0
  end
  if level < 0 then
    state = -1
  elseif level < 1 and state == 1 then
    state = 0
  end
  buckets[i] = {level, fraction, epoch, capacity, refill}
end

local reply = {state, now}
for i, key in ipairs(KEYS) do
  local bucket = buckets[i]
  if state == 1 and not looks_only then
    bucket[1] = bucket[1] - 1
  end
  if state >= 0 and not looks_only then
    redis.call('HSET', key, 'level', whole(bucket[1]), 'fraction', whole(bucket[2]),
      'at', whole(now), 'capacity', whole(bucket[4]), 'refill', whole(bucket[5]),
      'epoch', bucket[3])
    redis.call('PEXPIRE', key, IDLE_MS)
  end
  reply[#reply + 1] = bucket[1]
  reply[#reply + 1] = bucket[2]
  reply[#reply + 1] = bucket[3]
end
return reply
