internal import Platform

/// One table in memory. Pure: the caller passes the time, in milliseconds.
struct MemoryTable {
    /// A value with its expiry.
    private struct Entry {
        var value: TableValue
        /// The expiry of the value; nil for a permanent one.
        var until: UInt64?

        func isThere(_ now: UInt64) -> Bool { until.map { $0 > now } ?? true }
    }

    private(set) var incarnation: String?
    private(set) var top: UInt64 = 0
    private var truncatedThrough: UInt64 = 0
    private var entries: [ByteText: Entry] = [:]
    private var notices: [TableChangeFeed.Item] = []
    /// The times at which the consumption of each key is restored, by kind and name.
    private var rates: [String: [ByteText: Double]] = [:]

    func value(_ name: String, now: UInt64) -> TableValue? {
        guard let entry = entries[ByteText(name)], entry.isThere(now) else { return nil }
        return entry.value
    }

    func rows(prefix: String, after: String?, limit: Int, bytes: Int, now: UInt64) -> TablePage {
        let all = entries.keys.filter {
            $0.text.utf8.starts(with: prefix.utf8) && after?.precedesInBytes($0.text) ?? true
        }.sorted()
        var rows: [TableRow] = []
        var left = bytes
        var last: String?
        for name in all.prefix(limit) {
            if let value = value(name.text, now: now) {
                left -= value.bytes.count
                guard rows.isEmpty || left >= 0 else { return TablePage(rows, next: last) }
                rows.append(TableRow(name.text, value))
            }
            last = name.text
        }
        return TablePage(rows, next: all.count > limit ? last : nil)
    }

    /// Applies a change and returns its outcome.
    mutating func change(
        _ change: TableChange, now: UInt64, _ limits: ClusterEngineLimits
    ) throws(ClusterEngineError) -> TableOutcome {
        if let expected = change.tableIncarnation, expected != incarnation {
            throw .tableLost(expected, now: incarnation)
        }
        for one in change.preconditions where value(one.name, now: now)?.version ?? 0 != one.version {
            return .conflict(one.name)
        }
        entries = entries.filter { $0.value.isThere(now) }
        let new = change.writes.count { $0.operation != .delete && entries[ByteText($0.name)] == nil }
        guard new == 0 || entries.count + new <= limits.valuesPerTable else { return .full }
        if incarnation == nil { incarnation = ClusterTable.makeIncarnation() }
        top += 1
        for write in change.writes { apply(write, now) }
        if let bytes = change.notice {
            notices.append(TableChangeFeed.Item(top, bytes))
            while notices.count > limits.noticesPerTable { truncatedThrough = notices.removeFirst().number }
        }
        return .changed(top)
    }

    private mutating func apply(_ write: TableChange.Write, _ now: UInt64) {
        let name = ByteText(write.name)
        switch write.operation {
        case .put(let bytes): entries[name] = Entry(value: TableValue(bytes, version: top))
        case .putExpiring(let bytes, let lifetime):
            let until = now + UInt64(lifetime.milliseconds)
            entries[name] = Entry(value: TableValue(bytes, version: top), until: until)
        case .increment(let number):
            let before = entries[name].flatMap { Int64(String(decoding: $0.value.bytes, as: UTF8.self)) } ?? 0
            entries[name] = Entry(value: TableValue(Array(String(before &+ number).utf8), version: top))
        case .delete: entries[name] = nil
        }
    }

    func changeFeed(after number: UInt64?, limit: Int) -> TableChangeFeed {
        let items = notices.filter { $0.number > number ?? 0 }
        return TableChangeFeed(
            tableIncarnation: incarnation, head: top, truncatedThrough: truncatedThrough, Array(items.prefix(limit)),
            isComplete: items.count <= limit)
    }

    // MARK: Rates

    /// Returns the milliseconds to wait; nil if the units were consumed.
    mutating func consumeRates(_ takes: [RateConsumption], now: UInt64) -> Int? {
        let now = Double(now)
        var longest = 0.0
        for take in takes {
            let used = restoration(of: take, now: now)
            longest = max(longest, used - now - Double(take.burst - 1) * take.interval.fractionalMilliseconds)
        }
        // A smaller value is a rounding error.
        guard longest <= 0.001 else { return Int(longest.rounded(.up)) }
        for take in takes {
            let name = ByteText(take.key.name)
            // Much later ones are of a clock that was ahead.
            let latest = now + 2 * Double(take.burst) * take.interval.fractionalMilliseconds + 1_000
            var kind = (rates[take.key.kind] ?? [:]).filter { $0.value > now && $0.value <= latest }
            var used = restoration(of: take, now: now)
            while kind[name] == nil, kind.count >= take.maximumEntries {
                // Among equal ones the first in byte order, as in Redis.
                guard let first = kind.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }) else { break }
                kind[first.key] = nil
                let mostUsed = now + Double(take.burst - 1) * take.interval.fractionalMilliseconds
                used = min(max(used, first.value), mostUsed)
            }
            kind[name] = used + take.interval.fractionalMilliseconds
            rates[take.key.kind] = kind
        }
        return nil
    }

    /// Returns the time at which the consumption of a key is restored: at the latest that of all units. A later time is of a clock
    /// that was ahead, or of a longer interval.
    private func restoration(of take: RateConsumption, now: Double) -> Double {
        let stored = rates[take.key.kind]?[ByteText(take.key.name)] ?? now
        return min(max(now, stored), now + Double(take.burst) * take.interval.fractionalMilliseconds)
    }

    mutating func restore(_ key: RateKey) { rates[key.kind]?[ByteText(key.name)] = nil }
}

extension Duration {
    /// The duration in milliseconds.
    package var fractionalMilliseconds: Double { self / .milliseconds(1) }
}

extension ClusterTable {
    /// Returns a unique incarnation for a table.
    package static func makeIncarnation() -> String {
        var random = SystemRandomNumberGenerator()
        return String(random.next(), radix: 16) + String(random.next(), radix: 16)
    }
}

extension ClusterEngineError {
    package static func tableLost(_ expected: String, now incarnation: String?) -> Self {
        Self(
            .dataLoss,
            "the coordination store has lost data: table \(expected) is now \(incarnation ?? "missing"). Was it emptied "
                + "(FLUSHALL)? Repair it, then restart the nodes")
    }
}
