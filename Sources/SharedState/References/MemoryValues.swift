internal import Synchronization

/// The values of a store's in-memory keys.
final class MemoryValues: Sendable {
    private let values = Mutex<[SendableKey: any Sendable]>([:])

    func value<Value: Sendable>(of id: InMemoryKey<Value>.ID) -> Value? {
        values.withLock { $0[SendableKey(id)] } as? Value
    }

    func set<Value: Sendable>(_ value: Value, of id: InMemoryKey<Value>.ID) {
        // The old value is released out of the lock: its `deinit` may be code that uses this store.
        let replaced = values.withLock { $0.updateValue(value, forKey: SendableKey(id)) }
        _ = replaced
    }
}
