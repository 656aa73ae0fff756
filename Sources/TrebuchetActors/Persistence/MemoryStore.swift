internal import Synchronization

/// A store that lasts as long as its process, for tests and previews.
public final class MemoryStore: StateStore {
    private struct Contents {
        var values: [StateKey: [UInt8]] = [:]
        var logs: [StateKey: MemoryLog] = [:]
    }

    private let contents = Mutex(Contents())

    /// A store without entries.
    public init() {}

    /// The keys that have a value or a log.
    var keys: Set<StateKey> {
        contents.withLock { Set($0.values.keys).union($0.logs.filter { $0.value.stored != nil }.keys) }
    }

    /// Bytes of values and logs whose keys `isIncluded`, and how many of both there are.
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

    /// The values of those keys that have one; never fails.
    public func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        contents.withLock { contents in
            var found: [StateKey: [UInt8]] = [:]
            for key in keys { found[key] = contents.values[key] }
            return found
        }
    }

    /// Goes through all entries; never fails.
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

    /// The log of a key; never fails.
    public func log(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
        contents.withLock { $0.logs[key]?.stored }
    }

    /// Does all of the writes at one moment. Fails with `conflict` alone.
    public func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        try contents.withLock { contents throws(StateStoreError) in
            // Of those that are changed, so that nothing has happened when one of the writes fails.
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
