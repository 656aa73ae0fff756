/// What a reader refers to: a value, where it came from, and how that goes.
protocol SharedReference<Value>: AnyObject, Sendable {
    associatedtype Value: Sendable

    /// Reading any of these four is noticed by Observation.
    var value: Value { get }
    var isLoading: Bool { get }
    var loadError: (any Error)? { get }
    var saveError: (any Error)? { get }

    var updates: SharedUpdates<Value> { get }

    /// What it is, as a wrapper's description says it.
    var text: String { get }

    func load(isolation: isolated (any Actor)?) async throws
}

/// What a wrapper refers to that can set its value.
protocol MutableReference<Value>: SharedReference {
    /// Changes the value, with or without saving it afterwards.
    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result

    func save(isolation: isolated (any Actor)?) async throws

    @MainActor var operations: OperationRecords { get }

    /// The key of the value; nil for one without, and for a part of a value.
    var key: (any SharedReaderKey<Value>)? { get }
}
