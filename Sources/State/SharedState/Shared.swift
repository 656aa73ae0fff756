// `IdentifiedArray` and `IdentifiedArrayOf`.
@_exported public import IdentifiedArrays

/// A value that all wrappers with the same key share, and that can be set from any thread.
///
///     @Shared(.fileStorage(file)) var todos: [Todo] = []
///
/// Observation tracks its reads and changes. All wrappers created with the key refer to one value, which is loaded
/// when the first is created, and whose subscription ends with the last. The initial value of the first wrapper
/// counts.
@propertyWrapper
@dynamicMemberLookup
public struct Shared<Value: Sendable>: Sendable {
    private let box: SharedBox<any MutableReference<Value>>

    /// The common reference of the wrapper and its copies.
    var reference: any MutableReference<Value> {
        get { box.reference }
        nonmutating set { box.reference = newValue }
    }

    /// Creates a value without a key: shared through copies of this wrapper.
    public init(value: Value) { self.init(reference: StoredReference(value)) }

    /// Refers to the current value of another wrapper, even if that wrapper refers to another value later.
    public init(_ other: Shared<Value>) { self.init(reference: other.reference) }

    init(reference: any MutableReference<Value>) { box = SharedBox(reference) }

    /// Initializes parameters and properties from a `$value`.
    public init(projectedValue: Self) { self = projectedValue }

    /// The newest value. To set it, use ``withLock(_:)``.
    public var wrappedValue: Value { reference.value }

    /// The wrapper itself. Assignment makes the property, and all copies of the wrapper, refer to another shared
    /// value.
    public var projectedValue: Self {
        get { self }
        nonmutating set { reference = newValue.reference }
    }

    /// Changes the value and returns the result of `change`.
    ///
    /// Changes from several threads are serialized, and none is lost. Concurrent reads return the earlier value. When
    /// this returns, the new value is visible to all threads and handed to the key for saving, unless another thread
    /// is saving: then that thread saves it too. When `change` throws, nothing has changed.
    ///
    /// `change` should be short, and must not change the same value in another way: that traps. It works on a copy, so
    /// changing one element of an array copies the array.
    @discardableResult
    public func withLock<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
        try reference.change(saves: true, change)
    }

    /// A Boolean value that indicates whether the key is loading the value.
    public var isLoading: Bool { reference.isLoading }

    /// The error of the last load, or of the subscription; nil after the next success, also of a save.
    public var loadError: (any Error)? { reference.loadError }

    /// The error of the last save; nil after the next success.
    public var saveError: (any Error)? { reference.saveError }

    /// The current value, then each newer one; see ``SharedUpdates``.
    public var updates: SharedUpdates<Value> { reference.updates }

    /// The key of the value, by which extensions of `Shared` find the related objects.
    package var key: (any SharedReaderKey<Value>)? { reference.key }

    /// Loads the value again. Throws the error of the key, which is then in `loadError`.
    ///
    /// Changes made meanwhile stay. Throws `CancellationError` when the task is cancelled; the load continues.
    public func load(isolation: isolated (any Actor)? = #isolation) async throws {
        try await reference.load(isolation: isolation)
    }

    /// Saves the current value, and returns after that. Throws the error of the key, which is then in `saveError`.
    ///
    /// Throws `CancellationError` when the task is cancelled; the save continues.
    public func save(isolation: isolated (any Actor)? = #isolation) async throws {
        try await reference.save(isolation: isolation)
    }

    /// A part of the value, as a separate shared value.
    public subscript<Part: Sendable>(
        dynamicMember path: any WritableKeyPath<Value, Part> & Sendable
    ) -> Shared<Part> {
        Shared<Part>(reference: DerivedReference(reference, path))
    }

    /// A read-only part of the value.
    public subscript<Part: Sendable>(dynamicMember path: any KeyPath<Value, Part> & Sendable) -> SharedReader<Part> {
        SharedReader<Part>(reference: DerivedReader(reference, path))
    }
}

extension Shared: Equatable where Value: Equatable {
    /// Compares the values.
    public static func == (left: Self, right: Self) -> Bool { left.wrappedValue == right.wrappedValue }
}

extension Shared: CustomStringConvertible {
    /// `Shared<Int>(value: 0)`, or with the key, `Shared<Int>(.inMemory("count"))`.
    public var description: String { "\(Self.self)(\(reference.text))" }
}
