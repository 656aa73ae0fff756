import Synchronization
import TestSupport
import Trebuchet
import TrebuchetWire

/// A store whose writes wait for the test's signal, or fail on request.
final class GatedStore: StateStore {
    private struct Gate {
        var isClosed = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var writeFailure: StateStoreError?
        var readFailure: StateStoreError?
    }

    /// Records `write 1` for each write with its number.
    let journal = Journal()
    /// Records `write 1` when the write has failed.
    let failures = Journal()
    private let memory = MemoryStore()
    private let gate = Mutex(Gate())
    private let count = Mutex(0)
    private let recordedWrites = Mutex<[StateWrite]>([])

    /// The completed writes, in order.
    var writes: [StateWrite] { recordedWrites.withLock { $0 } }

    /// Makes writes wait from now on.
    func close() { gate.withLock { $0.isClosed = true } }

    /// Releases the waiting writes and all later ones.
    func open() {
        let waiting = gate.withLock { gate in
            gate.isClosed = false
            defer { gate.waiting = [] }
            return gate.waiting
        }
        for writer in waiting { writer.resume() }
    }

    /// Releases the waiting write; the next one waits again.
    func letOneThrough() {
        let first = gate.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
        first?.resume()
    }

    func failWrites(_ error: StateStoreError?) { gate.withLock { $0.writeFailure = error } }
    func failReads(_ error: StateStoreError?) { gate.withLock { $0.readFailure = error } }

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        if let failure = gate.withLock({ $0.readFailure }) { throw failure }
        return try await memory.get(keys)
    }

    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        if let failure = gate.withLock({ $0.readFailure }) { throw failure }
        return try await memory.list(namespace, prefix: prefix, after: after, limit: limit)
    }

    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? {
        if let failure = gate.withLock({ $0.readFailure }) { throw failure }
        return try await memory.readLog(key)
    }

    func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        let number = count.withLock { count in
            count += 1
            return count
        }
        await withCheckedContinuation { continuation in
            let mustWait = gate.withLock { gate in
                if gate.isClosed { gate.waiting.append(continuation) }
                return gate.isClosed
            }
            journal.record("write \(number)")
            if !mustWait { continuation.resume() }
        }
        if let failure = gate.withLock({ $0.writeFailure }) {
            failures.record("write \(number)")
            throw failure
        }
        try await memory.write(writes)
        recordedWrites.withLock { $0 += writes }
    }

    /// The text of a state with all its changes.
    func text(_ name: String) async throws -> String? {
        let key = StateKey("states", name)
        guard let log = try await memory.readLog(key) else {
            return try await memory.get(key).map { String(decoding: $0, as: UTF8.self) }
        }
        var text = log.snapshot.bytes
        for entry in log.entries {
            text = try entry.bytes.withUnsafeBytes { patch in
                try text.withUnsafeBytes { try JSONPatch.apply(patch, to: $0, maximumBytes: 1 << 30) }
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    func put(_ text: String, _ name: String) async throws {
        try await memory.put(Array(text.utf8), StateKey("states", name))
    }
}
