internal import Trebuchet

/// Where records of accounts stand, as bytes by names.
protocol AccountShelf: Sendable {
    /// Whether others write there too: then what is to be written says what it was made of.
    var isShared: Bool { get }

    /// The values of some names, in their order.
    func values(_ names: [String]) async throws -> [ShelfValue?]

    /// Values whose names begin with `prefix`, by the bytes of their names; fewer than `limit` only when there are no more.
    func page(_ prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: ShelfValue)]

    /// Does all of the changes or nothing.
    ///
    /// - Parameter expected: the versions of what they were made of; 0 for what was not there.
    /// - Returns: a number that grows with each change; nil when something is not as expected any more, and nothing was done.
    func write(_ changes: AccountRecords.Changes, expecting expected: [String: UInt64]) async throws -> UInt64?
}

/// A value as it stands there.
struct ShelfValue: Sendable {
    let bytes: [UInt8]
    /// Grows with each change of the value; 0 at a shelf that is not shared.
    let version: UInt64
}

/// A store that nobody else writes to.
struct StoreShelf: AccountShelf {
    let store: any StateStore

    var isShared: Bool { false }

    func values(_ names: [String]) async throws -> [ShelfValue?] {
        let keys = names.map { StateKey(AccountRecords.namespace, $0) }
        let found = try await store.get(keys)
        return keys.map { key in found[key].map { ShelfValue(bytes: $0, version: 0) } }
    }

    func page(_ prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: ShelfValue)] {
        try await store.list(AccountRecords.namespace, prefix: prefix, after: after, limit: limit).map {
            (name: $0.key.name, value: ShelfValue(bytes: $0.value, version: 0))
        }
    }

    func write(_ changes: AccountRecords.Changes, expecting expected: [String: UInt64]) async throws -> UInt64? {
        try await store.write(
            changes.values.map { name, value in
                let key = StateKey(AccountRecords.namespace, name)
                return value.map { .put($0, key) } ?? .delete(key)
            })
        return 0
    }
}
