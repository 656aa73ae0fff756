internal import Synchronization
internal import Trebuchet

/// A storage for records of accounts: bytes by name.
protocol AccountStorage: Sendable {
    /// Returns the values of some names, in their order.
    func values(_ names: [String]) async throws -> [AccountStorageValue]

    /// Returns values whose names begin with `prefix`, sorted by the bytes of their names; fewer than `limit` only at the end.
    func page(_ prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: AccountStorageValue)]

    /// Applies all of the changes or none.
    ///
    /// - Parameter expected: the versions that the changes depend on.
    /// - Returns: a number that grows with each change; nil when a version differs, and nothing was written.
    func write(_ changes: AccountRecords.Changes, expecting expected: [String: UInt64]) async throws -> UInt64?
}

/// A stored value.
struct AccountStorageValue: Sendable {
    /// Nil for a missing value.
    let bytes: [UInt8]?
    /// A later value of the name has a larger one.
    let version: UInt64
}

/// A store of which this object is the only writer. Writes run concurrently, so that they share the store's commits.
final class StoreAccountStorage: AccountStorage {
    private struct State {
        /// The number of completed writes, which is the version of values that are read now.
        var number: UInt64 = 0
        /// The number of the last write of each name.
        var lastWrites: [String: UInt64] = [:]
        /// The last write that may be missing in `lastWrites`.
        var lastForgotten: UInt64 = 0
        /// The names that are being written.
        var beingWritten: Set<String> = []
        /// Writes that depend on names that are being written.
        var waiters: [CheckedContinuation<Void, Never>] = []

        func isCurrent(_ version: UInt64, of name: String) -> Bool {
            version >= lastForgotten && lastWrites[name] ?? 0 <= version
        }
    }

    /// The maximum number of names whose last writes are remembered.
    private static let rememberedNames = 100_000

    private let store: any StateStore
    private let state = Mutex(State())

    init(store: any StateStore) { self.store = store }

    func values(_ names: [String]) async throws -> [AccountStorageValue] {
        let keys = names.map { StateKey(AccountRecords.namespace, $0) }
        // Before the read, which may or may not see a write that ends meanwhile.
        let version = state.withLock { $0.number }
        let found = try await store.get(keys)
        return keys.map { AccountStorageValue(bytes: found[$0], version: version) }
    }

    func page(_ prefix: String, after: String?, limit: Int) async throws -> [(name: String, value: AccountStorageValue)]
    {
        let version = state.withLock { $0.number }
        return try await store.list(AccountRecords.namespace, prefix: prefix, after: after, limit: limit).map {
            (name: $0.key.name, value: AccountStorageValue(bytes: $0.value, version: version))
        }
    }

    func write(_ changes: AccountRecords.Changes, expecting expected: [String: UInt64]) async throws -> UInt64? {
        let names = Set(changes.values.keys)
        guard await begin(names, expecting: expected) else { return nil }
        do {
            try await store.write(
                changes.values.map { name, value in
                    let key = StateKey(AccountRecords.namespace, name)
                    return value.map { .put($0, key) } ?? .delete(key)
                })
        } catch {
            // It may have been executed.
            _ = end(names)
            throw error
        }
        return end(names)
    }

    /// Waits for writes of the same names. Returns false when a version differs.
    private func begin(_ names: Set<String>, expecting expected: [String: UInt64]) async -> Bool {
        while true {
            let isCurrent: Bool? = state.withLock { state in
                guard expected.allSatisfy({ state.isCurrent($1, of: $0) }) else { return false }
                guard state.beingWritten.isDisjoint(with: names),
                    !expected.keys.contains(where: state.beingWritten.contains)
                else { return nil }
                state.beingWritten.formUnion(names)
                return true
            }
            if let isCurrent { return isCurrent }
            await withCheckedContinuation { continuation in
                let hasEnded = state.withLock { state in
                    let isBusy = !state.beingWritten.isEmpty
                    if isBusy { state.waiters.append(continuation) }
                    return !isBusy
                }
                if hasEnded { continuation.resume() }
            }
        }
    }

    private func end(_ names: Set<String>) -> UInt64 {
        let (number, waiters) = state.withLock { state in
            state.number += 1
            state.beingWritten.subtract(names)
            if state.lastWrites.count > Self.rememberedNames {
                state.lastWrites = [:]
                state.lastForgotten = state.number
            }
            for name in names { state.lastWrites[name] = state.number }
            defer { state.waiters = [] }
            return (state.number, state.waiters)
        }
        for waiter in waiters { waiter.resume() }
        return number
    }
}
