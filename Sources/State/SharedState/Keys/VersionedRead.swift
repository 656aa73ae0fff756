/// The result of a key's read. It becomes the value if that has not changed since the read began.
struct VersionedRead<Value: Sendable>: Sendable {
    /// Nil for no value, which means the initial value.
    let result: Result<Value?, any Error>
    /// Called after the result has become the value or the load error, with locks of the value held.
    let onAccept: (@Sendable () -> Void)?

    init(_ result: Result<Value?, any Error>, onAccept: (@Sendable () -> Void)? = nil) {
        self.result = result
        self.onAccept = onAccept
    }

    /// The error of the read; nil if it succeeded.
    var error: (any Error)? {
        if case .failure(let error) = result { error } else { nil }
    }
}

/// Counters of changes, saves and reads of a value. Two are equal if none happened in between.
struct ReadVersion: Sendable, Equatable {
    /// Changes of the value other than by loads.
    var changes: UInt64
    var saves: UInt64
    /// Loads that became the value.
    var loads: UInt64
    /// Reads of the subscription that became the value or an error.
    var reads: UInt64

    /// Returns true if nothing was set or saved since. A load that began earlier may have happened in between.
    func isLast(since earlier: ReadVersion) -> Bool { changes == earlier.changes && saves == earlier.saves }
}
