internal import Synchronization

/// What an operator remembers from one value to the next.
final class Kept<Value: Sendable>: Sendable {
    private let guarded: Mutex<Value>

    init(_ value: Value) { guarded = Mutex(value) }

    var value: Value { guarded.withLock { $0 } }

    /// Remembers the new value and returns the old one.
    @discardableResult
    func exchange(_ value: Value) -> Value {
        guarded.withLock { kept in
            var old = value
            swap(&old, &kept)
            return old
        }
    }

    /// Changes the value. What is to be released comes out with the result.
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { guarded.withLock { body(&$0) } }
}
