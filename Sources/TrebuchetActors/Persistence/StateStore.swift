/// Where state lives that outlasts its process: bytes by keys, and logs of changes by keys.
///
/// `put`, `delete` and `write` return when what they were given is kept as the store promises; until then nobody may be told
/// of it. A `get` or `list` that begins after that sees it. Functions must suspend rather than block: they are called from
/// reactors. All of them throw a `StateStoreError`, never an empty answer in place of one.
public protocol StateStore: Sendable {
    /// The values of those keys that have one.
    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]]

    /// The entries of a namespace whose names begin with `prefix`, in the order of their names' bytes.
    ///
    /// - Parameters:
    ///   - after: only names behind this one: the last of the page before.
    ///   - limit: at most so many; fewer come only when there are no more.
    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry]

    /// The log of a key: its newest whole value and all changes since; nil when there is none.
    ///
    /// Throws `damaged` when something of it is missing or changed.
    func log(_ key: StateKey) async throws(StateStoreError) -> StoredLog?

    /// Does all of the writes in their order, or throws and does none. Of several values for one key the last counts.
    func write(_ writes: [StateWrite]) async throws(StateStoreError)
}

/// A store that can tell whether what it writes is still where who opens it next will look.
package protocol PlacedStore: StateStore {
    /// Throws when it is not: for the question whether a server is ready, and not for each write.
    func checkPlace() async throws(StateStoreError)
}

/// A key with its value, as `StateStore.list` gives it.
public struct StateEntry: Equatable, Sendable {
    /// The name of the value.
    public let key: StateKey
    /// What was written last.
    public let value: [UInt8]

    /// For a store of your own.
    public init(_ key: StateKey, _ value: [UInt8]) {
        self.key = key
        self.value = value
    }
}

extension StateStore {
    /// The value of a key; nil when it has none.
    public func get(_ key: StateKey) async throws(StateStoreError) -> [UInt8]? { try await get([key])[key] }

    /// Writes one value; returns when it is kept as the store promises.
    public func put(_ value: [UInt8], _ key: StateKey) async throws(StateStoreError) {
        try await write([.put(value, key)])
    }

    /// Deletes one value, if it is there; returns when that is kept.
    public func delete(_ key: StateKey) async throws(StateStoreError) { try await write([.delete(key)]) }

    /// The first 1,000 entries of a namespace whose names begin with `prefix`.
    public func list(_ namespace: String, prefix: String = "") async throws(StateStoreError) -> [StateEntry] {
        try await list(namespace, prefix: prefix, after: nil, limit: 1_000)
    }
}
