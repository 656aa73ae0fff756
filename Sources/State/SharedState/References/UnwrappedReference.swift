internal import Synchronization

/// The value of an optional, for a reader that found one. While the optional is nil, the reader has the last value it
/// has seen.
final class UnwrappedReader<Value: Sendable>: SharedReference {
    private let parent: any SharedReference<Value?>
    private let last: LastKnownValue<Value>

    init(_ parent: any SharedReference<Value?>, _ last: LastKnownValue<Value>) {
        self.parent = parent
        self.last = last
    }

    var value: Value { last.update(parent.current) }
    var current: VersionedSnapshot<Value> {
        let root = parent.current
        return VersionedSnapshot(value: last.update(root), version: root.version)
    }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [last] in last.update($0) } }
    var text: String { "\(parent.text)!" }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
}

/// The value of an optional, for a writer that found one. While the optional is nil, changes affect only the last
/// value, which other readers do not see: the optional stays nil.
final class UnwrappedReference<Value: Sendable>: MutableReference {
    private let parent: any MutableReference<Value?>
    private let last: LastKnownValue<Value>

    init(_ parent: any MutableReference<Value?>, _ last: LastKnownValue<Value>) {
        self.parent = parent
        self.last = last
    }

    var value: Value { last.update(parent.current) }
    var current: VersionedSnapshot<Value> {
        let root = parent.current
        return VersionedSnapshot(value: last.update(root), version: root.version)
    }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [last] in last.update($0) } }
    var text: String { "\(parent.text)!" }
    @MainActor var operations: OperationScope { parent.operations }
    var key: (any SharedReaderKey<Value>)? { nil }

    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result {
        try parent.change(saves: saves) { root in
            // Within the turn: the version is the newest, and the next one is created here.
            let version = parent.current.version
            var value = last.update(VersionedSnapshot(value: root, version: version))
            let result = try body(&value)
            if root != nil { root = last.update(VersionedSnapshot(value: value, version: version + 1)) }
            return result
        }
    }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
    func save(isolation: isolated (any Actor)?) async throws { try await parent.save(isolation: isolation) }
}

/// The last known value of an optional.
final class LastKnownValue<Value: Sendable>: Sendable {
    private let stored: Mutex<VersionedSnapshot<Value>>

    init(_ value: Value, version: UInt64) { stored = Mutex(VersionedSnapshot(value: value, version: version)) }

    /// Returns the value, or the last known one. Threads may call this in another order than they have read: an older
    /// value does not replace a newer one.
    func update(_ newest: VersionedSnapshot<Value?>) -> Value {
        guard let value = newest.value else { return stored.withLock { $0.value } }
        let new = VersionedSnapshot(value: value, version: newest.version)
        // The old one is released outside the lock.
        let old = stored.withLock { stored in
            defer { if stored.version <= new.version { stored = new } }
            return stored
        }
        withExtendedLifetime(old) {}
        return value
    }
}
