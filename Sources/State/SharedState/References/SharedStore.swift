internal import Relays
internal import Synchronization

/// The table of shared values: one value per key, which all wrappers of the key refer to.
///
/// A wrapper uses the store that is ``current`` at its creation. There is one for the process; a test uses its own:
///
///     SharedStore.$current.withValue(SharedStore(files: InMemoryFileStorage())) {
///         @Shared(.inMemory("count")) var count = 0
///     }
///
/// In a process that runs tests, the process-wide store keeps files in memory: code that a test calls does not write
/// to the disk unless the test uses `SharedStore()`.
///
/// Like any task-local value, it propagates to child tasks and `Task {}`, but not to `Task.detached`, queues and
/// threads.
public final class SharedStore: Sendable {
    /// The store of wrappers that are created without an explicit one.
    @TaskLocal public static var current = SharedStore(
        files: TestProcess.isCurrent ? InMemoryFileStorage() : DiskFileStorage())

    /// The references by their keys, under the lock.
    private struct State {
        var entries: [SendableKey: WeakEntry] = [:]
        /// The keys whose references are being created.
        var pendingCreations: [SendableKey: PendingCreation] = [:]
    }

    /// The creations of a key's references that are in progress.
    private struct PendingCreation {
        var count = 0
        /// The number of references entered since.
        var insertions: UInt64 = 0
    }

    let memory = InMemoryValues()
    let files: StoredFiles
    private let state = Mutex(State())

    /// Creates a store.
    ///
    /// - Parameter files: The file access of file storage keys. Default: the disk, also in tests.
    public init(files: any FileStorage = DiskFileStorage()) { self.files = StoredFiles(in: files) }

    /// The number of values that wrappers retain.
    package var referenceCount: Int { state.withLock { $0.entries.count } }

    /// Returns the reference of a key: the existing one, else a new one, loaded and subscribed.
    func reference<Key: SharedReaderKey>(
        for key: Key, initialValue: () -> Key.Value
    ) -> StoredReference<Key.Value> {
        findOrCreate(key, initialValue) { $0.load(.initialValue($0.initialValue)) }
    }

    /// Returns the reference of a key, which is being loaded, once, and the outcome of that.
    func loading<Key: SharedReaderKey>(
        _ key: Key, initialValue: () -> Key.Value
    ) -> (reference: StoredReference<Key.Value>, outcome: AwaitableOutcome<Void>) {
        func load(_ reference: StoredReference<Key.Value>, _ context: LoadContext<Key.Value>) -> AwaitableOutcome<Void>
        {
            let outcome = AwaitableOutcome<Void>()
            reference.load(context) { outcome.set($0.result.map { _ in }) }
            return outcome
        }
        var started: (reference: StoredReference<Key.Value>, outcome: AwaitableOutcome<Void>)?
        let reference = findOrCreate(key, initialValue) { started = ($0, load($0, .initialValue($0.initialValue))) }
        if let started, started.reference === reference { return started }
        return (reference, load(reference, .userInitiated))
    }

    /// Returns the existing reference or creates one.
    ///
    /// - Parameter load: begins to load a new one.
    private func findOrCreate<Key: SharedReaderKey>(
        _ key: Key, _ initialValue: () -> Key.Value, load: (StoredReference<Key.Value>) -> Void
    ) -> StoredReference<Key.Value> {
        if let other = key as? any ForwardingKey<Key.Value> {
            return findOrCreate(other.original, initialValue, load: load)
        }
        let id = SendableKey(key.id, of: Key.self)
        let (existing, insertions) = startCreation(id)
        if let existing = existing as? StoredReference<Key.Value> { return existing }
        let candidate = StoredReference(initialValue(), key: key, id: id, store: self)
        // Before it is visible to other threads, and with no lock held: a second thread finds it loaded, or loads one
        // too.
        load(candidate)
        return insert(candidate, id, expecting: insertions) { load(candidate) }
    }

    /// Returns the existing reference. Otherwise the caller creates one, and ends that with `insert` or `cancelCreation`.
    private func startCreation(_ id: SendableKey) -> (existing: (any AnyObject & Sendable)?, insertions: UInt64) {
        state.withLock { state in
            if let existing = state.entries[id]?.object { return (existing, 0) }
            state.pendingCreations[id, default: PendingCreation()].count += 1
            return (nil, state.pendingCreations[id]?.insertions ?? 0)
        }
    }

    private func cancelCreation(_ id: SendableKey) {
        state.withLock { state in
            state.pendingCreations[id]?.count -= 1
            if state.pendingCreations[id]?.count == 0 { state.pendingCreations[id] = nil }
        }
    }

    /// Inserts and subscribes the candidate. Returns the earlier reference instead if there is one by now.
    ///
    /// - Parameter reload: called when another reference has been inserted and released since `insertions`: its saves
    ///   may be newer than the loaded value.
    private func insert<Value: Sendable>(
        _ candidate: StoredReference<Value>, _ id: SendableKey, expecting insertions: UInt64, reload: () -> Void
    ) -> StoredReference<Value> {
        var expected = insertions
        while true {
            switch insert(candidate, id, expecting: expected) {
            case .inserted:
                candidate.subscribe()
                return candidate
            case .earlier(let earlier):
                // One of another type belongs to another key.
                return earlier as? StoredReference<Value> ?? candidate
            case .outdated(let insertions):
                expected = insertions
                reload()
            }
        }
    }

    /// The result of an insertion.
    private enum InsertionOutcome {
        case inserted
        case earlier(any AnyObject & Sendable)
        case outdated(UInt64)
    }

    /// Inserts the candidate, unless a reference exists or was inserted since `expected` was read.
    private func insert(_ candidate: any AnyObject & Sendable, _ id: SendableKey, expecting expected: UInt64)
        -> InsertionOutcome
    {
        state.withLock { state in
            let earlier = state.entries[id]?.object
            guard var pending = state.pendingCreations[id] else {
                preconditionFailure("a reference must be inserted by its creator")
            }
            if earlier == nil, pending.insertions != expected { return .outdated(pending.insertions) }
            pending.count -= 1
            if earlier == nil { pending.insertions += 1 }
            state.pendingCreations[id] = pending.count > 0 ? pending : nil
            if let earlier { return .earlier(earlier) }
            state.entries[id] = WeakEntry(candidate)
            return .inserted
        }
    }

    /// Returns the reference of a key after a load. Throws the error of the load, and ``MissingValue`` if there is no
    /// value.
    func required<Key: SharedReaderKey>(
        _ key: Key, isolation: isolated (any Actor)?
    ) async throws -> StoredReference<Key.Value> {
        if let other = key as? any ForwardingKey<Key.Value> {
            return try await required(other.original, isolation: isolation)
        }
        let id = SendableKey(key.id, of: Key.self)
        let (existing, insertions) = startCreation(id)
        if let existing = existing as? StoredReference<Key.Value> {
            try await existing.require(isolation: isolation)
            return existing
        }
        let candidate: StoredReference<Key.Value>
        do {
            candidate = try await loaded(key, id, isolation: isolation)
        } catch {
            cancelCreation(id)
            throw error
        }
        // A reference that was inserted meanwhile may be older than the loaded value, or newer.
        var needsReload = false
        let reference = insert(candidate, id, expecting: insertions) { needsReload = true }
        if needsReload || reference !== candidate { try await reference.require(isolation: isolation) }
        return reference
    }

    /// Returns a reference that begins with the loaded value, without loading it again.
    private func loaded<Key: SharedReaderKey>(
        _ key: Key, _ id: SendableKey, isolation: isolated (any Actor)?
    ) async throws -> StoredReference<Key.Value> {
        let outcome = AwaitableOutcome<VersionedRead<Key.Value>>()
        let observed = ObservedFileContent()
        Self.$current.withValue(self) {
            let continuation = LoadContinuation<Key.Value>(observed: observed) { outcome.set(.success($0)) }
            key.load(context: .userInitiated, continuation: continuation)
        }
        let reading = try await outcome.get()
        guard let value = try reading.result.get() else { throw MissingValue(key: "\(key)") }
        reading.onAccept?()
        return StoredReference(value, key: key, id: id, store: self, observed: observed)
    }

    /// Removes a reference at its release. There may be a new one for the same key by then.
    func remove(_ reference: ObjectIdentifier, for id: SendableKey) {
        state.withLock { state in
            if state.entries[id]?.identity == reference { state.entries[id] = nil }
        }
    }
}

/// Any id as a key of a table that is shared between threads. Ids of different types are different.
struct SendableKey: Hashable, Sendable {
    // `nonisolated(unsafe)`: created from a Sendable value only.
    private nonisolated(unsafe) let base: AnyHashable
    private let type: ObjectIdentifier

    init<ID: Hashable & Sendable>(_ id: ID) { self.init(id, of: ID.self) }

    /// Creates a key from an id that is unique among those of a type.
    init(_ id: some Hashable & Sendable, of type: any Any.Type) {
        base = AnyHashable(id)
        self.type = ObjectIdentifier(type)
    }
}
