// `IdentifiedArray` and `IdentifiedArrayOf`.
@_exported public import IdentifiedArrays

/// A value that all wrappers with the same key share, and that can be set from any thread.
///
///     @Shared(.fileStorage(file)) var todos: [Todo] = []
///
///     $todos.withLock { $0.append(todo) }
///     for await todos in $todos.updates { show(todos) }
///
/// Reading it is noticed by Observation, and so is a change. All wrappers made with the key refer to one value, which is
/// loaded when the first is made, and whose subscription ends with the last; the first one's initial value counts.
@propertyWrapper
@dynamicMemberLookup
public struct Shared<Value: Sendable>: Sendable {
    private let box: SharedBox<any MutableReference<Value>>

    /// What the wrapper and its copies refer to.
    var reference: any MutableReference<Value> {
        get { box.reference }
        nonmutating set { box.reference = newValue }
    }

    /// A value without a key: shared by those who are handed this wrapper.
    public init(value: Value) { self.init(reference: StoredReference(value)) }

    /// Refers to the value that another wrapper refers to now, whatever that one is made to refer to later.
    public init(_ other: Shared<Value>) { self.init(reference: other.reference) }

    init(reference: any MutableReference<Value>) { box = SharedBox(reference) }

    /// For parameters and properties that are given a `$value`.
    public init(projectedValue: Self) { self = projectedValue }

    /// The newest value. To set it, use ``withLock(_:)``.
    public var wrappedValue: Value { reference.value }

    /// The wrapper itself. Setting it makes the property, and all copies of the wrapper, refer to another shared value.
    public var projectedValue: Self {
        get { self }
        nonmutating set { reference = newValue.reference }
    }

    /// Changes the value and returns what `change` returns.
    ///
    /// Changes from several threads come one after another, and none is lost; what others read during `change` is the
    /// value before it. The new value is there for all, and handed to the key to be saved, when this returns, unless
    /// another thread is just saving: then that one saves it too. When `change` throws, nothing has changed.
    ///
    /// `change` should be short, and must not change the same value in another way: that traps. It works on a copy, so
    /// changing one element of an array copies the array.
    @discardableResult
    public func withLock<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
        try reference.change(saves: true, change)
    }

    /// Whether the key is loading the value.
    public var isLoading: Bool { reference.isLoading }

    /// What the last load, or the subscription, failed with; nil after the next success, also of a save.
    public var loadError: (any Error)? { reference.loadError }

    /// What the last save failed with; nil after the next success.
    public var saveError: (any Error)? { reference.saveError }

    /// The current value, then each newer one; see ``SharedUpdates``.
    public var updates: SharedUpdates<Value> { reference.updates }

    /// The key that the value came of; what extensions of `Shared` find the other end by.
    package var key: (any SharedReaderKey<Value>)? { reference.key }

    /// Loads the value anew, and returns when it is there; throws what the key fails with, which is then in `loadError`.
    ///
    /// What is set meanwhile stays. Throws `CancellationError` when the task is cancelled; the load goes on.
    public func load(isolation: isolated (any Actor)? = #isolation) async throws {
        try await reference.load(isolation: isolation)
    }

    /// Saves the value as it is now, and returns when that is done; throws what the key fails with, which is then in
    /// `saveError`.
    ///
    /// Throws `CancellationError` when the task is cancelled; the save goes on.
    public func save(isolation: isolated (any Actor)? = #isolation) async throws {
        try await reference.save(isolation: isolation)
    }

    /// A part of the value, as a shared value of its own.
    public subscript<Part: Sendable>(
        dynamicMember path: any WritableKeyPath<Value, Part> & Sendable
    ) -> Shared<Part> {
        Shared<Part>(reference: DerivedReference(reference, path))
    }

    /// A part of the value that can only be read.
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
