/// What a reader refers to: a value, where it came from, and how that goes.
protocol SharedReference<Value>: AnyObject, Sendable {
    associatedtype Value: Sendable

    /// Reading any of these four is noticed by Observation.
    var value: Value { get }
    var isLoading: Bool { get }
    var loadError: (any Error)? { get }
    var saveError: (any Error)? { get }

    /// The value, and the number of the version of the whole that it is of. Noticed by Observation as a reading of the value.
    var current: VersionedPart<Value> { get }

    var updates: SharedUpdates<Value> { get }

    /// What it is, as a wrapper's description says it.
    var text: String { get }

    func load(isolation: isolated (any Actor)?) async throws
}

/// A value, or a part of one, with the number of the version of the whole.
struct VersionedPart<Value: Sendable>: Sendable {
    var value: Value
    var version: UInt64
}

/// What a wrapper refers to that can set its value.
protocol MutableReference<Value>: SharedReference {
    /// Changes the value, with or without saving it afterwards.
    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result

    func save(isolation: isolated (any Actor)?) async throws

    @MainActor var operations: OperationPlace { get }

    /// The key of the value; nil for one without, and for a part of a value.
    var key: (any SharedReaderKey<Value>)? { get }
}
