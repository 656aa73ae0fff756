internal import Synchronization

/// The values of a store's in-memory keys.
final class InMemoryValues: Sendable {
    /// A box that distinguishes a nil value from an absent one.
    private struct StoredValue<Value: Sendable>: Sendable {
        let value: Value
    }

    private let values = Mutex<[SendableKey: any Sendable]>([:])

    /// Returns the stored value. If there is none, stores and returns `initial`.
    func value<Value: Sendable>(of id: InMemoryKey<Value>.ID, orStore initial: Value?) -> Value? {
        values.withLock { values in
            if let stored = values[SendableKey(id)] as? StoredValue<Value> { return stored.value }
            if let initial { values[SendableKey(id)] = StoredValue(value: initial) }
            return initial
        }
    }

    func set<Value: Sendable>(_ value: Value, of id: InMemoryKey<Value>.ID) {
        // The old value is released outside the lock: its `deinit` may use this store.
        let replaced = values.withLock { $0.updateValue(StoredValue(value: value), forKey: SendableKey(id)) }
        _ = replaced
    }
}
