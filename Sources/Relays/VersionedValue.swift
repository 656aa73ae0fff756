/// A value with the number of its version: what a state relay decides, without lock or task.
@usableFromInline
struct VersionedValue<Value: Sendable>: Sendable {
    /// What a reader does next.
    @usableFromInline
    enum Step: Sendable {
        case value(Value, version: UInt64)
        case end
    }

    @usableFromInline
    private(set) var value: Value
    /// Begins at 1, so that a reader that has seen nothing (0) is behind.
    @usableFromInline
    private(set) var version: UInt64 = 1
    @usableFromInline
    var isFinished = false

    @inlinable
    init(_ value: Value) { self.value = value }

    /// Nil when the reader has seen all there is and more may come.
    @inlinable
    func step(after seen: UInt64) -> Step? {
        if version > seen { return .value(value, version: version) }
        return isFinished ? .end : nil
    }

    /// Returns the value that is not needed any more: the old one, or after the end the new one.
    @inlinable
    mutating func replace(with new: Value) -> Value {
        guard !isFinished else { return new }
        var replaced = new
        swap(&replaced, &value)
        version += 1
        return replaced
    }

    @inlinable
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
