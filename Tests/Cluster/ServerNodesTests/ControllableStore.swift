import Synchronization
import TestSupport
import Trebuchet

/// A store in memory whose operations wait or fail for as long as a test requires.
final class ControllableStore: StateStore {
    struct Faults {
        var holdsReads = false
        var holdsWrites = false
        var failsReads = false
    }

    private let memory = MemoryStore()
    private let faults = Mutex(Faults())

    func set(_ body: @Sendable (inout Faults) -> Void) { faults.withLock { body(&$0) } }

    private func read() async throws(StateStoreError) {
        _ = await eventually(within: .seconds(600)) { faults.withLock { !$0.holdsReads } }
        if faults.withLock({ $0.failsReads }) { throw StateStoreError(.failed, "the disk is gone") }
    }

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        try await read()
        return try await memory.get(keys)
    }

    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await memory.list(namespace, prefix: prefix, after: after, limit: limit)
    }

    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
        try await read()
        return try await memory.readLog(key)
    }

    func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        _ = await eventually(within: .seconds(600)) { faults.withLock { !$0.holdsWrites } }
        try await memory.write(writes)
    }
}
