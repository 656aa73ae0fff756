/// A store that can tell what it has, for those who administrate a server. Not every store need be one.
public protocol CatalogedStore: StateStore {
    /// The namespaces that have entries and whose names begin with `prefix`, in the order of their bytes.
    ///
    /// - Parameters:
    ///   - after: only names behind this one: the last of the page before.
    ///   - limit: at most so many; fewer come only when there are no more.
    func namespaces(prefix: String, after: String?, limit: Int) async throws(StateStoreError) -> [String]

    /// How much a namespace has of entries whose names begin with `prefix`; a log is one entry, with all its bytes.
    func usage(of namespace: String, prefix: String) async throws(StateStoreError) -> StoreUsage
}

/// How much a store has of something.
public struct StoreUsage: Equatable, Sendable {
    /// How many entries there are.
    public var entries: Int
    /// Of their values.
    public var bytes: Int

    /// - Parameters:
    ///   - entries: how many there are.
    ///   - bytes: of their values together.
    public init(entries: Int, bytes: Int) {
        self.entries = entries
        self.bytes = bytes
    }
}

extension MemoryStore: CatalogedStore {
    /// Goes through all keys, in memory.
    public func namespaces(
        prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [String] {
        // By their bytes: two that look alike are two.
        let found = Set(keys.lazy.map { Array($0.namespace.utf8) }).filter { namespace in
            namespace.starts(with: prefix.utf8)
                && after.map { $0.utf8.lexicographicallyPrecedes(namespace) } ?? true
        }
        return found.sorted { $0.lexicographicallyPrecedes($1) }.prefix(max(0, limit))
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// Goes through all entries of the namespace, in memory.
    public func usage(of namespace: String, prefix: String) async throws(StateStoreError) -> StoreUsage {
        usage { key in
            key.namespace.utf8.elementsEqual(namespace.utf8) && key.name.utf8.starts(with: prefix.utf8)
        }
    }
}
