/// A value with its version number: the logic of a state relay, without lock or task.
@usableFromInline
struct VersionedValue<Value: Sendable>: Sendable {
    /// The next action of a reader.
    @usableFromInline
    enum Step: Sendable {
        case value(Value, version: UInt64)
        case end
    }

    @usableFromInline
    private(set) var value: Value
    /// Begins at 1, so that a new reader (0) is behind.
    @usableFromInline
    private(set) var version: UInt64 = 1
    @usableFromInline
    var isFinished = false

    @inlinable
    init(_ value: Value) { self.value = value }

    /// Returns the next step, or nil if the reader has the newest value and more may come.
    @inlinable
    func step(after lastVersion: UInt64) -> Step? {
        if version > lastVersion { return .value(value, version: version) }
        return isFinished ? .end : nil
    }

    /// Replaces the value and returns the value to release: the old one, or after the end the new one.
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
