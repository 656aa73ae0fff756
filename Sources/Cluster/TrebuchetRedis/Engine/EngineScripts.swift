/// The scripts for atomic operations at the server. Numbers are passed and returned as text: Lua's numbers are not
/// exact above 2^53, and it formats large ones differently.
package enum EngineScripts {
    static let all =
        [announce, nodes, beginGeneration, joinGeneration, completeGeneration, acquire, renew, release, holder]
        + [append, store, remove, read] + tables

    /// Defines `now`, the server's time in milliseconds, and `text(n)`, a number as text.
    static let time = """
        local t = redis.call('TIME')
        local now = t[1] * 1000 + math.floor(t[2] / 1000)
        local function text(n) return string.format('%.0f', n) end

        """

    // MARK: Nodes

    /// KEYS: until, info. ARGV: node, info, milliseconds. Also removes some expired nodes from the lists.
    ///
    /// The info of the empty node is the time of the last announcement. If the clock was set back by more than a
    /// second, all times are moved back with it; otherwise a dead node would stay live for as long.
    static let announce = RedisScript(
        time + """
            local back = (redis.call('HGET', KEYS[2], '') or 0) - now
            if back > 1000 then
              for _, node in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
                redis.call('ZINCRBY', KEYS[1], text(-back), node)
              end
            end
            redis.call('HSET', KEYS[2], '', text(now))
            for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', text(now), 'LIMIT', 0, 100)) do
              redis.call('ZREM', KEYS[1], gone)
              redis.call('HDEL', KEYS[2], gone)
            end
            redis.call('ZADD', KEYS[1], text(now + ARGV[3]), ARGV[1])
            redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
            return 1
            """)

    /// KEYS: until, info. Returns node, milliseconds and info of each in turn.
    static let nodes = RedisScript(
        time + """
            local found = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf', 'WITHSCORES')
            local all = {}
            for i = 1, #found, 2 do
              all[#all + 1] = found[i]
              all[#all + 1] = text(found[i + 1] - now)
              all[#all + 1] = redis.call('HGET', KEYS[2], found[i]) or ''
            end
            return all
            """)

    // MARK: Generations

    /// KEYS: generation. ARGV: the name of a new one. Returns the name, and 1 if all slots belong to it.
    static let beginGeneration = RedisScript(
        """
        local found = redis.call('HMGET', KEYS[1], 'name', 'whole')
        if found[1] then return {found[1], found[2] and 1 or 0} end
        redis.call('HSET', KEYS[1], 'name', ARGV[1])
        return {ARGV[1], 0}
        """)

    /// KEYS: own. ARGV: generation. Fences of a generation begin after the time of its beginning, so that they are
    /// higher than all earlier ones: data of an earlier fence are never taken for current data.
    static let joinGeneration = RedisScript(
        time + """
            local own = redis.call('HMGET', KEYS[1], 'generation', 'fence')
            if own[1] == ARGV[1] then return 0 end
            if own[1] or not own[2] then
              redis.call('HSET', KEYS[1], 'fence', text(math.max(now, (own[2] or 0) + 1)))
              redis.call('HDEL', KEYS[1], 'owner', 'until', 'lasts')
            end
            redis.call('HSET', KEYS[1], 'generation', ARGV[1])
            return 1
            """)

    /// KEYS: generation. ARGV: its name. Returns 0 if there is another one by now.
    static let completeGeneration = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 'name') ~= ARGV[1] then return 0 end
        redis.call('HSET', KEYS[1], 'whole', 1)
        return 1
        """)

    // MARK: Slots. KEYS: own.

    /// The function `left(until, lasts)` returns the rest of a lease: never more than its duration, so that a clock
    /// that was set back does not extend it by more.
    private static let left =
        time + """
            local function left(ends, lasts)
              return math.min((ends or 0) - now, tonumber(lasts or ends or 0))
            end

            """

    /// ARGV: node, milliseconds, generation or nothing. The fence is never deleted.
    static let acquire = RedisScript(
        left + """
            local own = redis.call('HMGET', KEYS[1], 'owner', 'fence', 'until', 'lasts', 'generation')
            if ARGV[3] ~= '' and own[5] ~= ARGV[3] then return {'lost'} end
            local rest = left(own[3], own[4])
            if own[1] and own[1] ~= ARGV[1] and rest > 0 then
              if own[3] - now > rest then redis.call('HSET', KEYS[1], 'until', text(now + rest)) end
              return {'owned', own[1], own[2], text(rest)}
            end
            local fence = own[2]
            if own[1] ~= ARGV[1] then fence = text(redis.call('HINCRBY', KEYS[1], 'fence', 1)) end
            redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'until', text(now + ARGV[2]), 'lasts', ARGV[2])
            return {'acquired', fence}
            """)

    /// ARGV: node, fence, milliseconds. Returns the current fence if it fell.
    static let renew = RedisScript(
        time + """
            local own = redis.call('HMGET', KEYS[1], 'owner', 'fence')
            if tonumber(own[2] or '0') < tonumber(ARGV[2]) then return {'fell', own[2] or '0'} end
            if own[1] ~= ARGV[1] or own[2] ~= ARGV[2] then return 0 end
            redis.call('HSET', KEYS[1], 'until', text(now + ARGV[3]), 'lasts', ARGV[3])
            return 1
            """)

    /// ARGV: node, fence. Returns the current fence if it fell.
    static let release = RedisScript(
        """
        local own = redis.call('HMGET', KEYS[1], 'owner', 'fence')
        if tonumber(own[2] or '0') < tonumber(ARGV[2]) then return {'fell', own[2] or '0'} end
        if own[1] ~= ARGV[1] or own[2] ~= ARGV[2] then return 0 end
        redis.call('HDEL', KEYS[1], 'owner', 'until', 'lasts')
        return 1
        """)

    static let holder = RedisScript(
        left + """
            local own = redis.call('HMGET', KEYS[1], 'owner', 'fence', 'until', 'lasts')
            local rest = left(own[3], own[4])
            if not own[1] or rest <= 0 then return {} end
            return {own[1], own[2], text(rest)}
            """)

    // MARK: Logs

    /// Refuses a node that does not own the slot. ARGV begins with owner and fence.
    private static let owned =
        time + """
            local own = redis.call('HMGET', KEYS[1], 'owner', 'fence', 'until')
            if tonumber(own[2] or '0') < tonumber(ARGV[2]) then return {'fell', own[2] or '0'} end
            if own[1] ~= ARGV[1] or own[2] ~= ARGV[2] then return {'fenced', own[2] or '0'} end
            if tonumber(own[3]) <= now then return {'over'} end

            """

    /// KEYS: own, meta, log, done, calls. ARGV: owner, fence, expected top, channel, limit of entries, then the
    /// payload or nothing, then nothing or call, reply, limit of replies, their milliseconds. `ARGV[6]` tells which of
    /// both are present (`e`, `c`, `ec`).
    ///
    /// The stream is written first: if the server refuses that, nothing was written.
    package static let append = RedisScript(
        owned + """
            local hasEntry, hasCall = ARGV[6] ~= 'c', ARGV[6] ~= 'e'
            if hasCall then
              local reply = redis.call('HGET', KEYS[4], ARGV[8])
              if reply then return {'repeated', reply} end
            end
            local top = redis.call('HGET', KEYS[2], 'top') or '0'
            if top ~= ARGV[3] then return {'top', top} end
            if hasEntry then
              if redis.call('XLEN', KEYS[3]) >= tonumber(ARGV[5]) then return {'full'} end
              top = text(top + 1)
              redis.call('XADD', KEYS[3], top .. '-0', 'f', ARGV[2], 'd', ARGV[7])
              redis.call('HSET', KEYS[2], 'top', top, 'fence', ARGV[2])
            end
            if hasCall then
              redis.call('HSET', KEYS[4], ARGV[8], ARGV[9])
              if redis.call('RPUSH', KEYS[5], ARGV[8]) > tonumber(ARGV[10]) then
                redis.call('HDEL', KEYS[4], redis.call('LPOP', KEYS[5]))
              end
              redis.call('PEXPIRE', KEYS[4], ARGV[11])
              redis.call('PEXPIRE', KEYS[5], ARGV[11])
            end
            if hasEntry then redis.call('SPUBLISH', ARGV[4], ARGV[2] .. ':' .. top .. ':' .. ARGV[7]) end
            return {'accepted', top}
            """)

    /// The function `fenceAt(offset)` returns the fence of a known entry, else nil. `meta` is top, fence, snap_at,
    /// snap_fence.
    private static func fenceAt(meta: Int, log: Int) -> String {
        """
        local meta = redis.call('HMGET', KEYS[\(meta)], 'top', 'fence', 'snap_at', 'snap_fence')
        local top = meta[1] or '0'
        local function fenceAt(offset)
          if offset == top then return meta[2] or '0' end
          if offset == meta[3] then return meta[4] end
          if offset == '0' then return '0' end
          local found = redis.call('XRANGE', KEYS[\(log)], offset .. '-0', offset .. '-0')
          return found[1] and found[1][2][2]
        end

        """
    }

    /// KEYS: own, meta, log. ARGV: owner, fence, offset, snapshot, number of entries to keep.
    static let store = RedisScript(
        owned + fenceAt(meta: 2, log: 3) + """
            if tonumber(ARGV[3]) < tonumber(meta[3] or '0') then return {'misplaced'} end
            local fence = fenceAt(ARGV[3])
            if not fence then return {'misplaced'} end
            redis.call('HSET', KEYS[2], 'snap', ARGV[4], 'snap_at', ARGV[3], 'snap_fence', fence)
            local first = ARGV[3] - ARGV[5] + 1
            if first > 1 then redis.call('XTRIM', KEYS[3], 'MINID', text(first) .. '-0') end
            return {'stored'}
            """)

    /// KEYS: own, meta, log, done, calls. ARGV: owner, fence, offset.
    static let remove = RedisScript(
        owned + """
            if (redis.call('HGET', KEYS[2], 'top') or '0') ~= ARGV[3] then return {'misplaced'} end
            redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
            return {'stored'}
            """)

    /// KEYS: meta, log. ARGV: fence and offset of the reader, or nothing for both; limit of entries; limit of bytes.
    ///
    /// Returns the beginning, top and its fence, offset, fence and bytes of the snapshot, then id, fence and payload
    /// of each entry.
    static let read = RedisScript(
        """
        local function text(n) return string.format('%.0f', n) end

        """ + fenceAt(meta: 1, log: 2) + """
            local kind, from, snap = 'resumed', nil, ''
            if ARGV[2] ~= '' and fenceAt(ARGV[2]) == ARGV[1] then
              local next = text(ARGV[2] + 1) .. '-0'
              if ARGV[2] == top or redis.call('XRANGE', KEYS[2], next, next)[1] then from = ARGV[2] end
            end
            if not from and meta[3] then
              kind, from, snap = 'snapshot', meta[3], redis.call('HGET', KEYS[1], 'snap')
            elseif not from then
              kind, from = 'start', '0'
            end
            local all = {kind, top, meta[2] or '0', meta[3] or '0', meta[4] or '0', snap}
            local left, bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
            local start = text(from + 1) .. '-0'
            while left > 0 do
              local some = redis.call('XRANGE', KEYS[2], start, '+', 'COUNT', math.min(left, 16))
              if not some[1] then return all end
              for _, entry in ipairs(some) do
                bytes = bytes - #entry[2][4]
                if bytes < 0 and #all > 6 then return all end
                all[#all + 1] = entry[1]
                all[#all + 1] = entry[2][2]
                all[#all + 1] = entry[2][4]
              end
              left = left - #some
              start = '(' .. some[#some][1]
            end
            return all
            """)
}
