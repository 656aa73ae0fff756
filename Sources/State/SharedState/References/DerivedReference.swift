/// A read-only part of a shared value.
final class DerivedReader<Root: Sendable, Value: Sendable>: SharedReference {
    private let parent: any SharedReference<Root>
    private let path: any KeyPath<Root, Value> & Sendable

    init(_ parent: any SharedReference<Root>, _ path: any KeyPath<Root, Value> & Sendable) {
        self.parent = parent
        self.path = path
    }

    var value: Value { parent.value[keyPath: path] }
    var current: VersionedSnapshot<Value> {
        let root = parent.current
        return VersionedSnapshot(value: root.value[keyPath: path], version: root.version)
    }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [path] in $0.value[keyPath: path] } }
    var text: String { "\(parent.text)[dynamicMember: \(path)]" }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
}

/// A mutable part of a shared value.
final class DerivedReference<Root: Sendable, Value: Sendable>: MutableReference {
    private let parent: any MutableReference<Root>
    private let path: any WritableKeyPath<Root, Value> & Sendable

    init(_ parent: any MutableReference<Root>, _ path: any WritableKeyPath<Root, Value> & Sendable) {
        self.parent = parent
        self.path = path
    }

    var value: Value { parent.value[keyPath: path] }
    var current: VersionedSnapshot<Value> {
        let root = parent.current
        return VersionedSnapshot(value: root.value[keyPath: path], version: root.version)
    }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [path] in $0.value[keyPath: path] } }
    var text: String { "\(parent.text)[dynamicMember: \(path)]" }
    @MainActor var operations: OperationScope { parent.operations.scope(path) }
    var key: (any SharedReaderKey<Value>)? { nil }

    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result {
        try parent.change(saves: saves) { try body(&$0[keyPath: path]) }
    }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
    func save(isolation: isolated (any Actor)?) async throws { try await parent.save(isolation: isolation) }
}

/// The result of a closure applied to a shared value.
final class ComputedReader<Root: Sendable, Value: Sendable>: SharedReference {
    private let parent: any SharedReference<Root>
    private let compute: @Sendable (Root) -> Value

    init(_ parent: any SharedReference<Root>, _ compute: @escaping @Sendable (Root) -> Value) {
        self.parent = parent
        self.compute = compute
    }

    var value: Value { compute(parent.value) }
    var current: VersionedSnapshot<Value> {
        let root = parent.current
        return VersionedSnapshot(value: compute(root.value), version: root.version)
    }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [compute] in compute($0.value) } }
    var text: String { "\(parent.text).read" }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
}
