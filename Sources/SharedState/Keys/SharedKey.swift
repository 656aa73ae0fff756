/// A key whose value can also be set: how to save it.
public protocol SharedKey<Value>: SharedReaderKey {
    /// Saves the value and resumes the continuation.
    ///
    /// Called after each change through `withLock`, and by `save()`: one call at a time, each with the newest value.
    /// Changes that come from other threads during a call are handed over together in the next.
    func save(_ value: Value, context: SaveContext, continuation: SaveContinuation)
}

/// Why a value is saved.
public enum SaveContext: Sendable, Hashable {
    /// The value was changed.
    case didSet
    /// Somebody called `save()`.
    case userInitiated
}
