/// A store that can list its content, for administration. The conformance is optional.
public protocol CatalogedStore: StateStore {
    /// Returns the namespaces that have entries and whose names begin with `prefix`, in the order of their bytes.
    ///
    /// - Parameters:
    ///   - after: returns only names after this one: the last one of the previous page.
    ///   - limit: the maximum number of names; fewer are returned only if there are no more.
    func namespaces(prefix: String, after: String?, limit: Int) async throws(StateStoreError) -> [String]

    /// Returns the usage of the entries of a namespace whose names begin with `prefix`. A log counts as one entry with all its
    /// bytes.
    func usage(of namespace: String, prefix: String) async throws(StateStoreError) -> StoreUsage
}

/// The storage that a set of entries uses.
public struct StoreUsage: Equatable, Sendable {
    /// The number of entries.
    public var entries: Int
    /// The total size of their values in bytes.
    public var bytes: Int

    /// Creates a usage.
    ///
    /// - Parameters:
    ///   - entries: the number of entries.
    ///   - bytes: the total size of their values.
    public init(entries: Int, bytes: Int) {
        self.entries = entries
        self.bytes = bytes
    }
}

extension MemoryStore: CatalogedStore {
    /// Returns the namespaces by a scan of all keys.
    public func namespaces(
        prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [String] {
        // Compared by bytes: two names that look alike are different.
        let found = Set(keys.lazy.map { Array($0.namespace.utf8) }).filter { namespace in
            namespace.starts(with: prefix.utf8)
                && after.map { $0.utf8.lexicographicallyPrecedes(namespace) } ?? true
        }
        return found.sorted { $0.lexicographicallyPrecedes($1) }.prefix(max(0, limit))
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the usage by a scan of the namespace.
    public func usage(of namespace: String, prefix: String) async throws(StateStoreError) -> StoreUsage {
        usage { key in
            key.namespace.utf8.elementsEqual(namespace.utf8) && key.name.utf8.starts(with: prefix.utf8)
        }
    }
}
