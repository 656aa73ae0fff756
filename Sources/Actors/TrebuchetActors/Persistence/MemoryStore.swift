internal import Synchronization

/// A store in memory, for tests and previews.
public final class MemoryStore: StateStore {
    /// The values and logs.
    private struct Contents {
        var values: [StateKey: [UInt8]] = [:]
        var logs: [StateKey: MemoryLog] = [:]
    }

    private let contents = Mutex(Contents())

    /// Creates a store without entries.
    public init() {}

    /// The keys that have a value or a log.
    var keys: Set<StateKey> {
        contents.withLock { Set($0.values.keys).union($0.logs.filter { $0.value.stored != nil }.keys) }
    }

    /// Returns the number and size of the values and logs whose keys `isIncluded` accepts.
    func usage(_ isIncluded: (StateKey) -> Bool) -> StoreUsage {
        contents.withLock { contents in
            var usage = StoreUsage(entries: 0, bytes: 0)
            for (key, value) in contents.values where isIncluded(key) {
                usage.entries += 1
                usage.bytes += value.count
            }
            for (key, log) in contents.logs where log.stored != nil && isIncluded(key) {
                usage.entries += 1
                usage.bytes += log.bytes
            }
            return usage
        }
    }

    /// Returns the values of the keys that have one; never fails.
    public func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        contents.withLock { contents in
            var found: [StateKey: [UInt8]] = [:]
            for key in keys { found[key] = contents.values[key] }
            return found
        }
    }

    /// Returns entries by a scan of all values; never fails.
    public func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        let matching = contents.withLock { contents in
            contents.values.filter { key, _ in
                key.namespace.utf8.elementsEqual(namespace.utf8) && key.name.utf8.starts(with: prefix.utf8)
                    && after.map { $0.utf8.lexicographicallyPrecedes(key.name.utf8) } ?? true
            }
        }
        return matching.sorted { $0.key < $1.key }.prefix(max(0, limit)).map { StateEntry($0.key, $0.value) }
    }

    /// Returns the log of a key; never fails.
    public func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
        contents.withLock { $0.logs[key]?.stored }
    }

    /// Applies all writes atomically. Fails only with `conflict`.
    public func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        try contents.withLock { contents throws(StateStoreError) in
            // The earlier logs of the changed keys, which are restored if a write fails.
            var before: [StateKey: MemoryLog] = [:]
            do throws(StateStoreError) {
                for write in writes {
                    if case .put = write.operation { continue }
                    if case .delete = write.operation { continue }
                    var log = contents.logs.removeValue(forKey: write.key) ?? MemoryLog()
                    if before[write.key] == nil, writes.count > 1 { before[write.key] = log }
                    defer { contents.logs[write.key] = log.isEmpty ? nil : log }
                    try log.apply(write)
                }
            } catch {
                for (key, log) in before { contents.logs[key] = log.isEmpty ? nil : log }
                throw error
            }
            for write in writes {
                switch write.operation {
                case .put(let value): contents.values[write.key] = value
                case .delete: contents.values[write.key] = nil
                default: continue
                }
            }
        }
    }
}
