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

extension Shared {
    /// Creates a shared value from the value of an optional; nil when it has none.
    ///
    ///     if let user = Shared($currentUser) { edit(user) }
    ///
    /// If the optional becomes nil later, holders keep reading the last value, and their changes are dropped.
    public init?(_ base: Shared<Value?>) {
        let reference = base.reference
        let current = reference.current
        guard let value = current.value else { return nil }
        self.init(reference: UnwrappedReference(reference, LastKnownValue(value, version: current.version)))
    }

    /// Returns the result of a closure as a read-only value. The closure is called at each read.
    public func read<Part: Sendable>(_ compute: @escaping @Sendable (Value) -> Part) -> SharedReader<Part> {
        SharedReader<Part>(reference: ComputedReader(reference, compute))
    }

}

extension SharedReader {
    /// Creates a shared value from the value of an optional; nil when it has none.
    ///
    /// If the optional becomes nil later, holders keep reading the last value.
    public init?(_ base: SharedReader<Value?>) {
        let reference = base.reference
        let current = reference.current
        guard let value = current.value else { return nil }
        self.init(reference: UnwrappedReader(reference, LastKnownValue(value, version: current.version)))
    }

    /// Creates a read-only shared value from the value of an optional; nil when it has none.
    public init?(_ base: Shared<Value?>) { self.init(SharedReader<Value?>(base)) }

    /// Returns the result of a closure as a read-only value. The closure is called at each read.
    public func read<Part: Sendable>(_ compute: @escaping @Sendable (Value) -> Part) -> SharedReader<Part> {
        SharedReader<Part>(reference: ComputedReader(reference, compute))
    }

}

extension RangeReplaceableCollection {
    /// Creates a collection of the current elements of a shared array, each as a separate shared value:
    /// `Array($todos)`.
    public init<ID: Sendable, Part: Sendable>(_ shared: Shared<IdentifiedArray<ID, Part>>)
    where Element == Shared<Part> {
        self.init(shared.wrappedValue.ids.compactMap { Shared(shared[id: $0]) })
    }

    /// Creates a collection of the current elements of a shared array, each as a separate read-only value.
    public init<ID: Sendable, Part: Sendable>(_ shared: SharedReader<IdentifiedArray<ID, Part>>)
    where Element == SharedReader<Part> {
        self.init(shared.wrappedValue.ids.compactMap { SharedReader(shared[id: $0]) })
    }
}

extension Shared {
    /// Starts an operation, and shows its state in the value.
    ///
    ///     func rename(to name: String, onError: (@MainActor (any Error) -> Void)? = nil) {
    ///         start(.rename, onError: onError) { try await server.rename(name) }
    ///     }
    ///
    /// - When this returns, the status is pending and `onAttempt` was called. Later the outcome is written to the
    ///   value; then one of `onSuccess` and `onError` is called, and last `onSettled`. All run on the main actor.
    /// - The callbacks of each call come exactly once, regardless of wrappers, later calls or a reset.
    /// - Only the newest call writes status and error. The error stays until a success, or until ``reset(_:)``.
    /// - Until it settles, a call retains the value that it began with, like a wrapper, even if the wrapper refers to
    ///   another value by then. The key does not save the changes of an operation.
    ///
    /// - Parameter work: Runs in a separate task.
    @MainActor
    @discardableResult
    public func start<Output: Sendable>(
        _ slot: OperationSlot<Value>,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (Output) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Output, any Error>) -> Void)? = nil,
        _ work: @escaping @isolated(any) @Sendable () async throws -> Output
    ) -> OperationCall<Output> {
        let settle = beginOperation(slot, onAttempt, onSuccess, onError, onSettled)
        return OperationCall(work, settle: settle)
    }

    /// Starts an operation without its own task, and shows its state in the value, like ``start``.
    ///
    /// Such operations settle in the order of their reported outcomes.
    ///
    /// - Parameter outcome: reported at the end of the operation. Used by one call only.
    @MainActor
    package func start<Output: Sendable>(
        _ slot: OperationSlot<Value>,
        onAttempt: (@MainActor () -> Void)? = nil,
        onSuccess: (@MainActor (Output) -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Output, any Error>) -> Void)? = nil,
        until outcome: OperationOutcome<Output>
    ) -> OperationCall<Output> {
        let settle = beginOperation(slot, onAttempt, onSuccess, onError, onSettled)
        return OperationCall(outcome, settle: settle)
    }

    /// Begins a call.
    ///
    /// - Returns: a closure that shows the outcome.
    @MainActor
    private func beginOperation<Output: Sendable>(
        _ slot: OperationSlot<Value>, _ onAttempt: (@MainActor () -> Void)?,
        _ onSuccess: (@MainActor (Output) -> Void)?,
        _ onError: (@MainActor (any Error) -> Void)?, _ onSettled: (@MainActor (Result<Output, any Error>) -> Void)?
    ) -> @MainActor (Result<Output, any Error>) -> Void {
        // The wrapper may refer to another value by then.
        let reference = reference
        let operations = reference.operations
        let record = operations.startCall(slot.status, after: reference.value[keyPath: slot.error])
        let number = record.log.startCall()
        reference.writeState(record.log, in: slot)
        onAttempt?()
        return { result in
            let error: (any Error)? = if case .failure(let error) = result { error } else { nil }
            record.log.settle(number, error, pendingWhile: slot.pending)
            reference.writeState(record.log, in: slot)
            operations.endCall(record, slot.status)
            switch result {
            case .success(let output): onSuccess?(output)
            case .failure(let error): onError?(error)
            }
            onSettled?(result)
        }
    }

    /// Performs an operation, shows its state in the value, and returns its result.
    ///
    /// Cancellation of the task cancels the operation, which then settles with `CancellationError`. For additional
    /// callbacks, use ``start(_:onAttempt:onSuccess:onError:onSettled:_:)`` and the `value` of the call.
    @MainActor
    @discardableResult
    public func perform<Output: Sendable>(
        _ slot: OperationSlot<Value>, _ work: @escaping @Sendable () async throws -> Output
    ) async throws -> Output {
        try await start(slot, work).value
    }

    /// Clears the error and makes the status idle.
    ///
    /// Running calls continue and have their callbacks, but do not write to the value any more.
    @MainActor
    public func reset(_ slot: OperationSlot<Value>) {
        let reference = reference
        reference.operations.record(of: slot.status)?.log.reset()
        reference.writeState(OperationLog(), in: slot)
    }
}

extension MutableReference {
    @MainActor
    fileprivate func writeState(_ log: OperationLog, in slot: OperationSlot<Value>) {
        change(saves: false) { value in
            value[keyPath: slot.status] = log.status
            value[keyPath: slot.error] = log.error
        }
    }
}
