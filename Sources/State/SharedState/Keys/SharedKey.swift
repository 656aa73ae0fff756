/// A key whose value can also be saved.
public protocol SharedKey<Value>: SharedReaderKey {
    /// Saves the value and resumes the continuation.
    ///
    /// Called after each change through `withLock`, and by `save()`: one call at a time, each with the newest value.
    /// Changes from other threads during a call are combined in the next.
    func save(_ value: Value, context: SaveContext, continuation: SaveContinuation)
}

/// The reason for a save.
public enum SaveContext: Sendable, Hashable {
    /// The value was changed.
    case didSet
    /// `save()` was called.
    case userInitiated
}
