/// The scripts for atomic operations on tables at the server.
extension EngineScripts {
    static let tables = [tableValues, tableRows, tableChange, tableNotices, rates]

    /// The function `found(stored)` returns version and bytes of a stored value; nothing if it is missing or expired.
    private static let found =
        time + """
            local function found(stored)
              if not stored then return nil end
              local version, till, at = string.match(stored, '^(%d+):(%d+):()')
              if till ~= '0' and tonumber(till) <= now then return nil end
              return version, string.sub(stored, at)
            end

            """

    /// KEYS: values. ARGV: names. Returns version (0 for none) and bytes of each in turn.
    static let tableValues = RedisScript(
        found + """
            local all = {}
            for i, stored in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV))) do
              local version, bytes = found(stored)
              all[i * 2 - 1], all[i * 2] = version or '0', bytes or ''
            end
            return all
            """)

    /// KEYS: values, names. ARGV: the lowest and the highest name in the syntax of ZRANGEBYLEX, limit, limit of bytes.
    /// Returns the last name that was read, or nothing if no more follow, then name, version and bytes of each.
    static let tableRows = RedisScript(
        found + """
            local limit, bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
            local names = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, limit + 1)
            local all = {#names > limit and names[limit] or ''}
            for i = 1, math.min(limit, #names) do
              local version, value = found(redis.call('HGET', KEYS[1], names[i]))
              if version then
                bytes = bytes - #value
                if bytes < 0 and #all > 1 then
                  all[1] = names[i - 1]
                  return all
                end
                all[#all + 1] = names[i]
                all[#all + 1] = version
                all[#all + 1] = value
              end
            end
            return all
            """)

    /// KEYS: state, values, names, until, notices. ARGV: the expected incarnation or nothing, one for a new table, limits of
    /// values and of notices, channel, `n` for a notice or nothing, the notice, and the number of expectations. Then
    /// name and version of each expectation. Then each write: name, kind (`p`, `l`, `a`, `d`), number and bytes.
    ///
    /// Each change also removes some of the expired values.
    static let tableChange = RedisScript(
        found + """
            local life = redis.call('HGET', KEYS[1], 'life')
            if ARGV[1] ~= '' and life ~= ARGV[1] then return {'lost', life or ''} end
            local first = 9 + 2 * ARGV[8]
            for i = 9, first - 1, 2 do
              local version = found(redis.call('HGET', KEYS[2], ARGV[i])) or '0'
              if version ~= ARGV[i + 1] then return {'conflict', ARGV[i]} end
            end
            local function remove(name)
              redis.call('HDEL', KEYS[2], name)
              redis.call('ZREM', KEYS[3], name)
              redis.call('ZREM', KEYS[4], name)
            end
            for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', text(now), 'LIMIT', 0, 20)) do
              remove(name)
            end
            local new = 0
            for i = first, #ARGV, 4 do
              if ARGV[i + 1] ~= 'd' and redis.call('HEXISTS', KEYS[2], ARGV[i]) == 0 then new = new + 1 end
            end
            if new > 0 and redis.call('HLEN', KEYS[2]) + new > tonumber(ARGV[3]) then return {'full'} end
            local top = text((redis.call('HGET', KEYS[1], 'top') or 0) + 1)
            redis.call('HSET', KEYS[1], 'top', top, 'life', life or ARGV[2])
            for i = first, #ARGV, 4 do
              local name, operation, number, bytes = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
              if operation == 'd' then
                remove(name)
              else
                local till = operation == 'l' and text(now + number) or '0'
                if operation == 'a' then
                  local _, before = found(redis.call('HGET', KEYS[2], name))
                  bytes = text((before and string.match(before, '^-?%d+$') or 0) + number)
                end
                redis.call('HSET', KEYS[2], name, top .. ':' .. till .. ':' .. bytes)
                redis.call('ZADD', KEYS[3], 0, name)
                if operation == 'l' then
                  redis.call('ZADD', KEYS[4], till, name)
                else
                  redis.call('ZREM', KEYS[4], name)
                end
              end
            end
            if ARGV[6] == 'n' then
              redis.call('XADD', KEYS[5], top .. '-0', 'd', ARGV[7])
              local over = redis.call('XLEN', KEYS[5]) - ARGV[4]
              if over > 0 then
                local removed = redis.call('XRANGE', KEYS[5], '-', '+', 'COUNT', over)
                redis.call('HSET', KEYS[1], 'cut', string.sub(removed[#removed][1], 1, -3))
                redis.call('XTRIM', KEYS[5], 'MAXLEN', ARGV[4])
              end
              redis.call('SPUBLISH', ARGV[5], top)
            end
            return {'changed', top}
            """)

    /// KEYS: state, notices. ARGV: the number after which to read, limit. Returns incarnation, last number and
    /// truncation, whether no more follow, then id and bytes of each.
    static let tableNotices = RedisScript(
        """
        local state = redis.call('HMGET', KEYS[1], 'life', 'top', 'cut')
        local limit = tonumber(ARGV[2])
        local found = redis.call('XRANGE', KEYS[2], '(' .. ARGV[1] .. '-0', '+', 'COUNT', limit + 1)
        local all = {state[1] or '', state[2] or '0', state[3] or '0', #found > limit and 0 or 1}
        for i = 1, math.min(limit, #found) do
          all[#all + 1] = found[i][1]
          all[#all + 1] = found[i][2][2]
        end
        return all
        """)

    /// KEYS: the set of each rate. ARGV: name, milliseconds of the interval, burst and maximum number of keys, of
    /// each. The score of a name is the time at which its rate is restored, at the latest that of all units: a later one is
    /// of a clock that was ahead, or of a longer interval. Returns the milliseconds to wait, 0 if the units were consumed.
    static let rates = RedisScript(
        """
        local t = redis.call('TIME')
        local now = t[1] * 1000 + t[2] / 1000
        local function number(n) return string.format('%.3f', n) end
        local longest, used = 0, {}
        for i, key in ipairs(KEYS) do
          local a = i * 4 - 3
          used[i] = math.max(now, tonumber(redis.call('ZSCORE', key, ARGV[a]) or now))
          used[i] = math.min(used[i], now + ARGV[a + 2] * ARGV[a + 1])
          longest = math.max(longest, used[i] - now - (ARGV[a + 2] - 1) * ARGV[a + 1])
        end
        if longest > 0.001 then return math.ceil(longest) end
        for i, key in ipairs(KEYS) do
          local a = i * 4 - 3
          local back = redis.call('ZRANGEBYSCORE', key, '-inf', number(now), 'LIMIT', 0, 20)
          if back[1] then redis.call('ZREM', key, unpack(back)) end
          local latest = now + 2 * ARGV[a + 2] * ARGV[a + 1] + 1000
          redis.call('ZREMRANGEBYSCORE', key, '(' .. number(latest), '+inf')
          local over = redis.call('ZCARD', key) - ARGV[a + 3]
          if over >= 0 and not redis.call('ZSCORE', key, ARGV[a]) then
            local last = redis.call('ZRANGE', key, over, over, 'WITHSCORES')
            redis.call('ZREMRANGEBYRANK', key, 0, over)
            used[i] = math.min(math.max(used[i], tonumber(last[2])), now + (ARGV[a + 2] - 1) * ARGV[a + 1])
          end
          redis.call('ZADD', key, number(used[i] + ARGV[a + 1]), ARGV[a])
        end
        return 0
        """)
}
