/// A shared value that can only be read; see ``Shared``.
///
/// With a key that can save, it shares the value with the `@Shared` wrappers of that key.
@propertyWrapper
@dynamicMemberLookup
public struct SharedReader<Value: Sendable>: Sendable {
    private let box: SharedBox<any SharedReference<Value>>

    /// What the wrapper and its copies refer to.
    var reference: any SharedReference<Value> {
        get { box.reference }
        nonmutating set { box.reference = newValue }
    }

    /// A value that does not change.
    public init(value: Value) { self.init(reference: StoredReference(value)) }

    /// The value of a wrapper that can also set it: the one that it refers to now.
    public init(_ shared: Shared<Value>) { self.init(reference: shared.reference) }

    /// Refers to the value that another wrapper refers to now, whatever that one is made to refer to later.
    public init(_ other: SharedReader<Value>) { self.init(reference: other.reference) }

    init(reference: any SharedReference<Value>) { box = SharedBox(reference) }

    /// For parameters and properties that are given a `$value`.
    public init(projectedValue: Self) { self = projectedValue }

    /// The newest value.
    public var wrappedValue: Value { reference.value }

    /// The wrapper itself. Setting it makes the property, and all copies of the wrapper, refer to another shared value.
    public var projectedValue: Self {
        get { self }
        nonmutating set { reference = newValue.reference }
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
    /// `SharedReader<Int>(value: 0)`, or with the key, `SharedReader<Int>(.inMemory("count"))`.
    public var description: String { "\(Self.self)(\(reference.text))" }
}
