/// The target of a reader: a value, its source, and its loading and saving state.
protocol SharedReference<Value>: AnyObject, Sendable {
    associatedtype Value: Sendable

    /// Observation tracks reads of these four properties.
    var value: Value { get }
    var isLoading: Bool { get }
    var loadError: (any Error)? { get }
    var saveError: (any Error)? { get }

    /// The value, with the version of the whole value it belongs to. Observation tracks it as a read of the value.
    var current: VersionedSnapshot<Value> { get }

    var updates: SharedUpdates<Value> { get }

    /// The description of the reference in the description of a wrapper.
    var text: String { get }

    func load(isolation: isolated (any Actor)?) async throws
}

/// A value, or a part of one, with the version of the whole.
struct VersionedSnapshot<Value: Sendable>: Sendable {
    var value: Value
    var version: UInt64
}

/// The target of a wrapper that can set its value.
protocol MutableReference<Value>: SharedReference {
    /// Changes the value, and saves it afterwards if `saves` is true.
    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result

    func save(isolation: isolated (any Actor)?) async throws

    @MainActor var operations: OperationScope { get }

    /// The key of the value; nil for a value without a key, and for a part of a value.
    var key: (any SharedReaderKey<Value>)? { get }
}
