internal import Synchronization

/// The state of an operator between values.
final class OperatorState<Value: Sendable>: Sendable {
    private let guarded: Mutex<Value>

    init(_ value: Value) { guarded = Mutex(value) }

    var value: Value { guarded.withLock { $0 } }

    /// Stores the new value and returns the old one.
    @discardableResult
    func exchange(_ value: Value) -> Value {
        guarded.withLock { stored in
            var old = value
            swap(&old, &stored)
            return old
        }
    }

    /// Changes the value. Values to be released leave the lock with the result.
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { guarded.withLock { body(&$0) } }
}
