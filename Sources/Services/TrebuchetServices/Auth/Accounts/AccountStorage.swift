internal import Trebuchet

/// A storage for records of accounts: bytes by name.
protocol AccountStorage: Sendable {
    /// True when other nodes write to the storage; then each write gives the versions that it depends on.
    var isShared: Bool { get }

    /// Returns the values of some names, in their order.
    func values(_ names: [String]) async throws -> [AccountStorageValue?]

    /// Returns values whose names begin with `prefix`, sorted by the bytes of their names; fewer than `limit` only at the end.
    func page(_ prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: AccountStorageValue)]

    /// Applies all of the changes or none.
    ///
    /// - Parameter expected: the versions that the changes depend on; 0 for a missing value.
    /// - Returns: a number that grows with each change; nil when a version differs, and nothing was written.
    func write(_ changes: AccountRecords.Changes, expecting expected: [String: UInt64]) async throws -> UInt64?
}

/// A stored value.
struct AccountStorageValue: Sendable {
    let bytes: [UInt8]
    /// Grows with each change of the value; 0 in a storage that is not shared.
    let version: UInt64
}

/// A store with a single writer.
struct StoreAccountStorage: AccountStorage {
    let store: any StateStore

    var isShared: Bool { false }

    func values(_ names: [String]) async throws -> [AccountStorageValue?] {
        let keys = names.map { StateKey(AccountRecords.namespace, $0) }
        let found = try await store.get(keys)
        return keys.map { key in found[key].map { AccountStorageValue(bytes: $0, version: 0) } }
    }

    func page(_ prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: AccountStorageValue)]
    {
        try await store.list(AccountRecords.namespace, prefix: prefix, after: after, limit: limit).map {
            (name: $0.key.name, value: AccountStorageValue(bytes: $0.value, version: 0))
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
