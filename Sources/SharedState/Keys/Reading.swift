/// What a key has read for a value: it becomes the value if that has not changed since the reading began.
struct Reading<Value: Sendable>: Sendable {
    /// Nil when there is nothing: the value is the initial one then.
    let result: Result<Value?, any Error>
    /// Called once it has become the value, or the error of its loading, with locks of the value held.
    let whenTaken: (@Sendable () -> Void)?

    init(_ result: Result<Value?, any Error>, whenTaken: (@Sendable () -> Void)? = nil) {
        self.result = result
        self.whenTaken = whenTaken
    }

    /// What its loading failed with; nil when it did not.
    var error: (any Error)? {
        if case .failure(let error) = result { error } else { nil }
    }
}

/// How often a value was changed, saved and read anew: the same twice when nothing has come between.
struct ReadingMoment: Sendable, Equatable {
    /// Changes of the value other than by loads.
    var changes: UInt64
    var saves: UInt64
    /// Loads that became the value.
    var loads: UInt64
    /// Readings of the subscription that became the value or an error.
    var readings: UInt64

    /// Whether nothing was set or saved since. A load that has begun earlier may have come between.
    func isLast(since earlier: ReadingMoment) -> Bool { changes == earlier.changes && saves == earlier.saves }
}
