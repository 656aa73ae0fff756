internal import Synchronization
internal import Trebuchet

/// A store as used by one server until its simulated kill, after which no write of the server reaches the store.
final class RevocableStore: WrappingStore {
    /// The running writes, under the lock.
    private struct State {
        var isRevoked = false
        var writes = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let store: any StateStore
    var wrapped: any StateStore { store }
    private let state = Mutex(State())

    init(_ store: any StateStore) { self.store = store }

    /// Returns after the running writes of the store.
    func revoke() async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                state.isRevoked = true
                if state.writes > 0 { state.waiting.append(continuation) }
                return state.writes == 0
            }
            if isDone { continuation.resume() }
        }
    }

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] { try await store.get(keys) }

    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await store.list(namespace, prefix: prefix, after: after, limit: limit)
    }

    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await store.readLog(key) }

    func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        let mayWrite = state.withLock { state in
            if !state.isRevoked { state.writes += 1 }
            return !state.isRevoked
        }
        guard mayWrite else { throw StateStoreError(.closed, "the server was killed") }
        defer { didWrite() }
        try await store.write(writes)
    }

    private func didWrite() {
        let waiting = state.withLock { state in
            state.writes -= 1
            guard state.isRevoked, state.writes == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
