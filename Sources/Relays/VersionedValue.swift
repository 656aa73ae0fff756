/// A value with the number of its version: what a state relay decides, without lock or task.
struct VersionedValue<Value: Sendable>: Sendable {
    /// What a reader does next.
    enum Step: Sendable {
        case value(Value, version: UInt64)
        case end
    }

    private(set) var value: Value
    /// Begins at 1, so that a reader that has seen nothing (0) is behind.
    private(set) var version: UInt64 = 1
    var isFinished = false

    init(_ value: Value) { self.value = value }

    /// Nil when the reader has seen all there is and more may come.
    func step(after seen: UInt64) -> Step? {
        if version > seen { return .value(value, version: version) }
        return isFinished ? .end : nil
    }

    /// Returns the value that is not needed any more: the old one, or after the end the new one.
    mutating func replace(with new: Value) -> Value {
        guard !isFinished else { return new }
        var replaced = new
        swap(&replaced, &value)
        version += 1
        return replaced
    }

    mutating func mutate<Result, Failure: Error>(
        _ change: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        if isFinished {
            var copy = value
            return try change(&copy)
        }
        defer { version += 1 }
        return try change(&value)
    }
}
