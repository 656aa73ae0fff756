/// A shared value that can only be read; see ``Shared``.
///
/// With a key that can save, it shares the value with the `@Shared` wrappers of that key.
@propertyWrapper
@dynamicMemberLookup
public struct SharedReader<Value: Sendable>: Sendable {
    let reference: any SharedReference<Value>

    /// A value that does not change.
    public init(value: Value) { reference = StoredReference(value) }

    /// The value of a wrapper that can also set it.
    public init(_ shared: Shared<Value>) { reference = shared.reference }

    init(reference: any SharedReference<Value>) { self.reference = reference }

    /// For parameters and properties that are given a `$value`.
    public init(projectedValue: Self) { self = projectedValue }

    /// The newest value.
    public var wrappedValue: Value { reference.value }

    /// The wrapper itself. Setting it makes the property refer to another shared value.
    public var projectedValue: Self {
        get { self }
        set { self = newValue }
    }

    /// Whether the key is loading the value.
    public var isLoading: Bool { reference.isLoading }

    /// What the last load, or the subscription, failed with; nil after the next success.
    public var loadError: (any Error)? { reference.loadError }

    /// The current value, then each newer one; see ``SharedUpdates``.
    public var updates: SharedUpdates<Value> { reference.updates }

    /// Loads the value anew, and returns when it is there; throws what the key fails with, which is then in `loadError`.
    ///
    /// Throws `CancellationError` when the task is cancelled; the load goes on.
    public func load(isolation: isolated (any Actor)? = #isolation) async throws {
        try await reference.load(isolation: isolation)
    }

    /// A part of the value.
    public subscript<Part: Sendable>(dynamicMember path: any KeyPath<Value, Part> & Sendable) -> SharedReader<Part> {
        SharedReader<Part>(reference: DerivedReader(reference, path))
    }
}

extension SharedReader: Equatable where Value: Equatable {
    /// Compares the values.
    public static func == (left: Self, right: Self) -> Bool { left.wrappedValue == right.wrappedValue }
}

extension SharedReader: CustomStringConvertible {
    public var description: String { "SharedReader(\(wrappedValue))" }
}
