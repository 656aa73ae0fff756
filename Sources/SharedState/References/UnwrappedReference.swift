internal import Synchronization

/// A value that may be there, for who found it there: while it is gone, readers have the last one that they have seen.
final class UnwrappedReader<Value: Sendable>: SharedReference {
    private let parent: any SharedReference<Value?>
    private let last: LastValue<Value>

    init(_ parent: any SharedReference<Value?>, _ last: LastValue<Value>) {
        self.parent = parent
        self.last = last
    }

    var value: Value { last.seen(parent.value) }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [last] in last.seen($0) } }
    var text: String { "\(parent.text)!" }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
}

/// The same for who can set it. What is changed while it is gone is the last value, which nobody else sees: the value stays
/// away.
final class UnwrappedReference<Value: Sendable>: MutableReference {
    private let parent: any MutableReference<Value?>
    private let last: LastValue<Value>

    init(_ parent: any MutableReference<Value?>, _ last: LastValue<Value>) {
        self.parent = parent
        self.last = last
    }

    var value: Value { last.seen(parent.value) }
    var isLoading: Bool { parent.isLoading }
    var loadError: (any Error)? { parent.loadError }
    var saveError: (any Error)? { parent.saveError }
    var updates: SharedUpdates<Value> { SharedUpdates(parent.updates) { [last] in last.seen($0) } }
    var text: String { "\(parent.text)!" }
    @MainActor var operations: OperationRecords { parent.operations }
    var key: (any SharedReaderKey<Value>)? { nil }

    func change<Result>(saves: Bool, _ body: (inout Value) throws -> Result) rethrows -> Result {
        try parent.change(saves: saves) { whole in
            var value = last.seen(whole)
            let result = try body(&value)
            if whole != nil { whole = last.seen(value) }
            return result
        }
    }

    func load(isolation: isolated (any Actor)?) async throws { try await parent.load(isolation: isolation) }
    func save(isolation: isolated (any Actor)?) async throws { try await parent.save(isolation: isolation) }
}

/// The newest value that was there.
final class LastValue<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    func seen(_ newest: Value?) -> Value {
        guard let newest else { return value.withLock { $0 } }
        // The old one is released out of the lock.
        let old = value.withLock { value in
            defer { value = newest }
            return value
        }
        withExtendedLifetime(old) {}
        return newest
    }
}
