/// A read-only shared value; see ``Shared``.
///
/// With a key that can save, it shares the value with the `@Shared` wrappers of that key.
@propertyWrapper
@dynamicMemberLookup
public struct SharedReader<Value: Sendable>: Sendable {
    private let box: SharedBox<any SharedReference<Value>>

    /// The common reference of the wrapper and its copies.
    var reference: any SharedReference<Value> {
        get { box.reference }
        nonmutating set { box.reference = newValue }
    }

    /// Creates a constant value.
    public init(value: Value) { self.init(reference: StoredReference(value)) }

    /// Refers to the current value of a mutable wrapper.
    public init(_ shared: Shared<Value>) { self.init(reference: shared.reference) }

    /// Refers to the current value of another wrapper, even if that wrapper refers to another value later.
    public init(_ other: SharedReader<Value>) { self.init(reference: other.reference) }

    init(reference: any SharedReference<Value>) { box = SharedBox(reference) }

    /// Initializes parameters and properties from a `$value`.
    public init(projectedValue: Self) { self = projectedValue }

    /// The newest value.
    public var wrappedValue: Value { reference.value }

    /// The wrapper itself. Assignment makes the property, and all copies of the wrapper, refer to another shared
    /// value.
    public var projectedValue: Self {
        get { self }
        nonmutating set { reference = newValue.reference }
    }

    /// A Boolean value that indicates whether the key is loading the value.
    public var isLoading: Bool { reference.isLoading }

    /// The error of the last load, or of the subscription; nil after the next success.
    public var loadError: (any Error)? { reference.loadError }

    /// The current value, then each newer one; see ``SharedUpdates``.
    public var updates: SharedUpdates<Value> { reference.updates }

    /// Loads the value again. Throws the error of the key, which is then in `loadError`.
    ///
    /// Throws `CancellationError` when the task is cancelled; the load continues.
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
