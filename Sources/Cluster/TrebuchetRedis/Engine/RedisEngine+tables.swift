internal import Platform

/// Tables, which have no owner. Each change is one script.
extension RedisEngine {
    /// Returns the values of some names.
    public func values(_ names: [String], of table: ClusterTable) async throws(ClusterEngineError) -> [TableValue?] {
        try limits.check(names, of: table)
        guard !names.isEmpty else { return [] }
        let words =
            try await run(EngineScripts.tableValues, [keys.part(.values, of: table)], names.map { .text($0) }).elements
            ?? []
        guard words.count == names.count * 2 else { throw Self.damaged("table '\(table)'") }
        var values: [TableValue?] = []
        values.reserveCapacity(names.count)
        for index in stride(from: 0, to: words.count, by: 2) {
            let value = try Self.value(words[index], words[index + 1], table)
            values.append(value.version == 0 ? nil : value)
        }
        return values
    }

    private static func value(
        _ version: RESPValue, _ bytes: RESPValue, _ table: ClusterTable
    ) throws(ClusterEngineError) -> TableValue {
        guard let version = version.number.flatMap({ UInt64(exactly: $0) }), let bytes = bytes.bytes else {
            throw damaged("table '\(table)'")
        }
        return TableValue(bytes, version: version)
    }

    /// Returns values whose names begin with `prefix`, in their order.
    public func rows(
        of table: ClusterTable, prefix: String, after: String?, limit: Int
    ) async throws(ClusterEngineError) -> TablePage {
        try limits.check(prefix: prefix, after: after, of: table)
        let limit = min(max(1, limit), ClusterEngineLimits.maximumNames)
        let isBehind = after.map { prefix.precedesInBytes($0) || prefix.isSameBytes(as: $0) } ?? false
        let lowest = isBehind ? "(\(after ?? "")" : "[\(prefix)"
        // UTF-8 text never contains the byte 255.
        let highest = prefix.isEmpty ? [UInt8(ascii: "+")] : Array("(\(prefix)".utf8) + [255]
        let words =
            try await run(
                EngineScripts.tableRows, [keys.part(.values, of: table), keys.part(.names, of: table)],
                [.text(lowest), .bytes(highest), .integer(Int64(limit)), .integer(Int64(limits.readBytes))]
            ).elements ?? []
        guard words.count % 3 == 1, let next = words[0].text else { throw Self.damaged("table '\(table)'") }
        var rows: [TableRow] = []
        for index in stride(from: 1, to: words.count, by: 3) {
            guard let name = words[index].text else { throw Self.damaged("table '\(table)'") }
            rows.append(TableRow(name, try Self.value(words[index + 1], words[index + 2], table)))
        }
        return TablePage(rows, next: next.isEmpty ? nil : next)
    }

    /// Compares, writes and publishes in one script.
    public func apply(_ change: TableChange, to table: ClusterTable) async throws(ClusterEngineError) -> TableOutcome {
        try limits.check(change, of: table)
        var arguments: [RedisArgument] = [
            .text(change.tableIncarnation ?? ""), .text(ClusterTable.makeIncarnation()),
            .integer(Int64(limits.valuesPerTable)),
            .integer(Int64(limits.noticesPerTable)), .bytes(keys.part(.published, of: table)),
            change.notice == nil ? "" : "n", .bytes(change.notice ?? []), .integer(Int64(change.preconditions.count)),
        ]
        for one in change.preconditions { arguments += [.text(one.name), .text(String(one.version))] }
        for write in change.writes {
            arguments.append(.text(write.name))
            switch write.operation {
            case .put(let bytes): arguments += ["p", "", .bytes(bytes)]
            case .putExpiring(let bytes, let lifetime):
                arguments += ["l", .integer(Int64(try ClusterEngineLimits.milliseconds(lifetime))), .bytes(bytes)]
            case .increment(let number): arguments += ["a", .integer(number), ""]
            case .delete: arguments += ["d", "", ""]
            }
        }
        let parts = [EngineKeys.TableKeySuffix.state, .values, .names, .until, .notices].map {
            keys.part($0, of: table)
        }
        let words = try await run(EngineScripts.tableChange, parts, arguments, confirmation).elements ?? []
        guard let word = words.first else { throw Self.damaged("table '\(table)'") }
        if word.isText("full") { return .full }
        guard words.count == 2, let what = words[1].text else { throw Self.damaged("table '\(table)'") }
        if word.isText("lost") { throw .tableLost(change.tableIncarnation ?? "", now: what.isEmpty ? nil : what) }
        if word.isText("conflict") { return .conflict(what) }
        guard word.isText("changed"), let number = UInt64(what) else { throw Self.damaged("table '\(table)'") }
        return .changed(number)
    }

    /// Returns the notices after a change.
    public func changeFeed(
        of table: ClusterTable, after number: UInt64?, limit: Int
    ) async throws(ClusterEngineError) -> TableChangeFeed {
        try limits.check(table)
        let words =
            try await run(
                EngineScripts.tableNotices, [keys.part(.state, of: table), keys.part(.notices, of: table)],
                [.text(String(number ?? 0)), .integer(Int64(max(1, limit)))]
            ).elements ?? []
        guard words.count >= 4, words.count % 2 == 0, let incarnation = words[0].text,
            let top = words[1].number.flatMap({ UInt64(exactly: $0) }),
            let truncatedThrough = words[2].number.flatMap({ UInt64(exactly: $0) })
        else { throw Self.damaged("table '\(table)'") }
        var items: [TableChangeFeed.Item] = []
        for index in stride(from: 4, to: words.count, by: 2) {
            // The ids have the form number-0.
            guard let number = words[index].text.flatMap({ UInt64($0.dropLast(2)) }), let bytes = words[index + 1].bytes
            else { throw Self.damaged("table '\(table)'") }
            items.append(TableChangeFeed.Item(number, bytes))
        }
        return TableChangeFeed(
            tableIncarnation: incarnation.isEmpty ? nil : incarnation, head: top, truncatedThrough: truncatedThrough,
            items,
            isComplete: words[3].number == 1)
    }

    /// Subscribes to the arrival of notices. After a lost connection it is resumed automatically.
    public func subscribeToChanges(
        of table: ClusterTable, _ receive: @escaping @Sendable (TableEvent) -> Void
    ) async throws(ClusterEngineError) -> any ClusterSubscription {
        try limits.check(table)
        return try await subscribe(keys.part(.published, of: table)) { event in
            switch event {
            case .message(let bytes):
                // Other messages on the channel are ignored.
                if let number = UInt64(String(decoding: bytes, as: UTF8.self)) { receive(.noticesAvailable(number)) }
            case .mayHaveMissed: receive(.eventsMissed)
            case .ended(let error): receive(.ended(ClusterEngineError(error)))
            }
        }
    }

    /// Consumes one unit of each of some rates, or none.
    public func consumeRates(_ takes: [RateConsumption], of table: ClusterTable) async throws(ClusterEngineError)
        -> Duration?
    {
        try limits.check(takes, of: table)
        guard !takes.isEmpty else { return nil }
        let arguments = takes.flatMap { take -> [RedisArgument] in
            [
                .text(take.key.name), .text("\(take.interval.fractionalMilliseconds)"), .integer(Int64(take.burst)),
                .integer(Int64(take.maximumEntries)),
            ]
        }
        let sets = takes.map { keys.rate($0.key.kind, of: table) }
        guard let wait = try await run(EngineScripts.rates, sets, arguments).number else {
            throw Self.damaged("the rates of table '\(table)'")
        }
        return wait > 0 ? .milliseconds(wait) : nil
    }

    /// Restores the full rate of a key.
    public func resetRate(_ key: RateKey, of table: ClusterTable) async throws(ClusterEngineError) {
        try limits.check(table)
        try limits.check(key)
        let set = keys.rate(key.kind, of: table)
        _ = try await performRequest { () async throws(RedisError) in
            try await route.send(RedisCommand("ZREM", [.bytes(set), .text(key.name)]), key: set)
        }
    }
}
