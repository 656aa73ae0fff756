internal import Synchronization

/// A store that lasts as long as its process, for tests and previews.
public final class MemoryStore: StateStore {
    private let values = Mutex<[StateKey: [UInt8]]>([:])

    /// A store without entries.
    public init() {}

    var keys: [StateKey] { values.withLock { Array($0.keys) } }

    /// The values of those keys that have one; never fails.
    public func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        values.withLock { values in
            var found: [StateKey: [UInt8]] = [:]
            for key in keys { found[key] = values[key] }
            return found
        }
    }

    /// Goes through all entries; never fails.
    public func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        let matching = values.withLock { values in
            values.filter { key, _ in
                key.namespace.utf8.elementsEqual(namespace.utf8) && key.name.utf8.starts(with: prefix.utf8)
                    && after.map { $0.utf8.lexicographicallyPrecedes(key.name.utf8) } ?? true
            }
        }
        return matching.sorted { $0.key < $1.key }.prefix(max(0, limit)).map { StateEntry($0.key, $0.value) }
    }

    /// Does all of the writes at one moment; never fails.
    public func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        values.withLock { values in
            for write in writes { values[write.key] = write.value }
        }
    }
}
