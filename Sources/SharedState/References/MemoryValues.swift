internal import Synchronization

/// The values of a store's in-memory keys.
final class MemoryValues: Sendable {
    /// A value of any type, told from none also where it is nil.
    private struct Kept<Value: Sendable>: Sendable {
        let value: Value
    }

    private let values = Mutex<[SendableKey: any Sendable]>([:])

    /// The value of before; with none, `initial` is it from now on.
    func value<Value: Sendable>(of id: InMemoryKey<Value>.ID, orKeep initial: Value?) -> Value? {
        values.withLock { values in
            if let kept = values[SendableKey(id)] as? Kept<Value> { return kept.value }
            if let initial { values[SendableKey(id)] = Kept(value: initial) }
            return initial
        }
    }

    func set<Value: Sendable>(_ value: Value, of id: InMemoryKey<Value>.ID) {
        // The old value is released out of the lock: its `deinit` may be code that uses this store.
        let replaced = values.withLock { $0.updateValue(Kept(value: value), forKey: SendableKey(id)) }
        _ = replaced
    }
}
