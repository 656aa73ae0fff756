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

    var value: Value { last.seen(parent.current) }
    var current: VersionedSnapshot<Value> {
        let whole = parent.current
        return VersionedSnapshot(value: last.seen(whole), version: whole.version)
    }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [last] in last.seen($0) } }
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

    var value: Value { last.seen(parent.current) }
    var current: VersionedSnapshot<Value> {
        let whole = parent.current
        return VersionedSnapshot(value: last.seen(whole), version: whole.version)
    }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [last] in last.seen($0) } }
    var text: String { "\(parent.text)!" }
    @MainActor var operations: OperationScope { parent.operations }
    var key: (any SharedReaderKey<Value>)? { nil }

    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result {
        try parent.change(saves: saves) { whole in
            // Within the turn: the version is the newest, and the next one is created here.
            let version = parent.current.version
            var value = last.seen(VersionedSnapshot(value: whole, version: version))
            let result = try body(&value)
            if whole != nil { whole = last.seen(VersionedSnapshot(value: value, version: version + 1)) }
            return result
        }
    }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
    func save(isolation: isolated (any Actor)?) async throws { try await parent.save(isolation: isolation) }
}

/// The last known value of an optional.
final class LastKnownValue<Value: Sendable>: Sendable {
    private let kept: Mutex<VersionedSnapshot<Value>>

    init(_ value: Value, version: UInt64) { kept = Mutex(VersionedSnapshot(value: value, version: version)) }

    /// Returns the value, or the last known one. Threads may call this in another order than they have read: an older
    /// value does not replace a newer one.
    func seen(_ newest: VersionedSnapshot<Value?>) -> Value {
        guard let value = newest.value else { return kept.withLock { $0.value } }
        let new = VersionedSnapshot(value: value, version: newest.version)
        // The old one is released outside the lock.
        let old = kept.withLock { kept in
            defer { if kept.version <= new.version { kept = new } }
            return kept
        }
        withExtendedLifetime(old) {}
        return value
    }
}
