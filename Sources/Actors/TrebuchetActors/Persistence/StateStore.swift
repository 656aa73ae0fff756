/// A store for state that survives its process: bytes by keys, and logs of changes by keys.
///
/// `put`, `delete` and `write` return after the data is durable as the store promises; until then it must not be visible to
/// clients. A `get` or `list` that starts afterwards sees it. Implementations must suspend instead of blocking, because they
/// are called on reactors. All of them throw a `StateStoreError`, and never return an empty result instead of one.
public protocol StateStore: Sendable {
    /// Returns the values of the keys that have one.
    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]]

    /// Returns the entries of a namespace whose names begin with `prefix`, in the order of their names' bytes.
    ///
    /// - Parameters:
    ///   - after: returns only names after this one: the last one of the previous page.
    ///   - limit: the maximum number of entries; fewer are returned only if there are no more.
    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry]

    /// Returns the log of a key: its newest whole value and all changes since then; nil if there is none.
    ///
    /// Throws `damaged` if a part of it is missing or changed.
    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog?

    /// Applies all writes in their order, or throws and applies none. The last of several values for one key counts.
    func write(_ writes: [StateWrite]) async throws(StateStoreError)
}

/// A store that can check whether its file is still at the place where the next process opens it.
package protocol FileBackedStore: StateStore {
    /// Throws if the file is elsewhere, or if the store refuses all writes. Called for readiness checks.
    func checkFileLocation() async throws(StateStoreError)
}

/// A key with its value, as `StateStore.list` returns it.
public struct StateEntry: Equatable, Sendable {
    /// The key.
    public let key: StateKey
    /// The value that was written last.
    public let value: [UInt8]

    /// Creates an entry. For custom stores.
    public init(_ key: StateKey, _ value: [UInt8]) {
        self.key = key
        self.value = value
    }
}

extension StateStore {
    /// Returns the value of a key; nil if it has none.
    public func get(_ key: StateKey) async throws(StateStoreError) -> [UInt8]? { try await get([key])[key] }

    /// Writes one value. Returns after it is durable as the store promises.
    public func put(_ value: [UInt8], _ key: StateKey) async throws(StateStoreError) {
        try await write([.put(value, key)])
    }

    /// Deletes one value, if it exists. Returns after the deletion is durable.
    public func delete(_ key: StateKey) async throws(StateStoreError) { try await write([.delete(key)]) }

    /// Returns the first 1,000 entries of a namespace whose names begin with `prefix`.
    public func list(_ namespace: String, prefix: String = "") async throws(StateStoreError) -> [StateEntry] {
        try await list(namespace, prefix: prefix, after: nil, limit: 1_000)
    }
}
