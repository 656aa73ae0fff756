/// A property wrapper that records whether its value was set, as a part of a ``DeltaState``.
///
/// A change is sent as the whole new value, so use it for small values. In JSON it is only the value.
@propertyWrapper
public struct DeltaValue<Value: Codable & Sendable>: DeltaState {
    private var value: Value
    private var isChanged = false
    private var stamp = ChangeStamp()

    /// Creates the wrapper with a value that counts as unchanged.
    public init(wrappedValue: Value) { value = wrappedValue }

    /// The value. Setting it or changing it in place counts as a change, even if the new value is equal.
    public var wrappedValue: Value {
        get { value }
        _modify {
            isChanged = true
            yield &value
        }
    }

    public init(from decoder: any Decoder) throws {
        value = try decoder.singleValueContainer().decode(Value.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }

    /// Returns a replacement of the whole value if it was set since the last call, otherwise no operations.
    public mutating func takeChanges() -> StateChanges? {
        var changes = StateChanges()
        changes.start = stamp
        if isChanged {
            changes.replace(value)
            isChanged = false
            stamp = ChangeStamp()
        }
        changes.end = stamp
        return changes
    }

    /// Replaces the value. Throws ``StateChangesError`` for changes of parts of it.
    public mutating func apply(_ changes: StateChanges) throws {
        try changes.apply(to: &value) { _, _, _ in false }
        (isChanged, stamp) = (false, ChangeStamp())
    }
}

extension DeltaValue: Equatable where Value: Equatable {
    /// Returns whether the values are equal, ignoring recorded changes.
    public static func == (one: DeltaValue, other: DeltaValue) -> Bool { one.value == other.value }
}

extension DeltaValue: Hashable where Value: Hashable {
    public func hash(into hasher: inout Hasher) { value.hash(into: &hasher) }
}
