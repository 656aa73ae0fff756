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
        var making: [SendableKey: PendingCreation] = [:]
    }

    /// The creations of a key's references that are in progress.
    private struct PendingCreation {
        var count = 0
        /// The number of references entered since.
        var entered: UInt64 = 0
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
        findOrMake(key, initialValue) { $0.load(.initialValue($0.initialValue)) }
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
        var begun: (reference: StoredReference<Key.Value>, outcome: AwaitableOutcome<Void>)?
        let reference = findOrMake(key, initialValue) { begun = ($0, load($0, .initialValue($0.initialValue))) }
        if let begun, begun.reference === reference { return begun }
        return (reference, load(reference, .userInitiated))
    }

    /// Returns the existing reference or creates one.
    ///
    /// - Parameter load: begins to load a new one.
    private func findOrMake<Key: SharedReaderKey>(
        _ key: Key, _ initialValue: () -> Key.Value, load: (StoredReference<Key.Value>) -> Void
    ) -> StoredReference<Key.Value> {
        if let other = key as? any ForwardingKey<Key.Value> {
            return findOrMake(other.original, initialValue, load: load)
        }
        let id = SendableKey(key.id, of: Key.self)
        let (held, entered) = beginMaking(id)
        if let held = held as? StoredReference<Key.Value> { return held }
        let candidate = StoredReference(initialValue(), key: key, id: id, store: self)
        // Before it is visible to other threads, and with no lock held: a second thread finds it loaded, or loads one
        // too.
        load(candidate)
        return enter(candidate, id, unlessAfter: entered) { load(candidate) }
    }

    /// Returns the existing reference. Otherwise the caller creates one, and ends that with `enter` or `giveUpMaking`.
    private func beginMaking(_ id: SendableKey) -> (held: (any AnyObject & Sendable)?, entered: UInt64) {
        state.withLock { state in
            if let held = state.entries[id]?.object { return (held, 0) }
            state.making[id, default: PendingCreation()].count += 1
            return (nil, state.making[id]?.entered ?? 0)
        }
    }

    private func giveUpMaking(_ id: SendableKey) {
        state.withLock { state in
            state.making[id]?.count -= 1
            if state.making[id]?.count == 0 { state.making[id] = nil }
        }
    }

    /// Enters and subscribes the candidate. Returns the earlier reference instead if there is one by now.
    ///
    /// - Parameter loadAgain: called when another reference has been entered and released since `entered`: its saves
    ///   may be newer than the loaded value.
    private func enter<Value: Sendable>(
        _ candidate: StoredReference<Value>, _ id: SendableKey, unlessAfter entered: UInt64, loadAgain: () -> Void
    ) -> StoredReference<Value> {
        var seen = entered
        while true {
            switch enter(candidate, id, unlessAfter: seen) {
            case .entered:
                candidate.subscribe()
                return candidate
            case .earlier(let earlier):
                // One of another type belongs to another key.
                return earlier as? StoredReference<Value> ?? candidate
            case .outdated(let entered):
                seen = entered
                loadAgain()
            }
        }
    }

    /// The result of entering a reference.
    private enum InsertionOutcome {
        case entered
        case earlier(any AnyObject & Sendable)
        case outdated(UInt64)
    }

    /// Enters the candidate, unless another reference exists, or has existed since `seen` had been entered.
    private func enter(_ candidate: any AnyObject & Sendable, _ id: SendableKey, unlessAfter seen: UInt64)
        -> InsertionOutcome
    {
        state.withLock { state in
            let earlier = state.entries[id]?.object
            guard var making = state.making[id] else {
                preconditionFailure("a reference must be entered by its creator")
            }
            if earlier == nil, making.entered != seen { return .outdated(making.entered) }
            making.count -= 1
            if earlier == nil { making.entered += 1 }
            state.making[id] = making.count > 0 ? making : nil
            if let earlier { return .earlier(earlier) }
            state.entries[id] = WeakEntry(candidate)
            return .entered
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
        let (held, entered) = beginMaking(id)
        if let held = held as? StoredReference<Key.Value> {
            try await held.require(isolation: isolation)
            return held
        }
        let candidate: StoredReference<Key.Value>
        do {
            candidate = try await loaded(key, id, isolation: isolation)
        } catch {
            giveUpMaking(id)
            throw error
        }
        // A reference that was entered meanwhile may be older than the loaded value, or newer.
        var isToLoadAgain = false
        let reference = enter(candidate, id, unlessAfter: entered) { isToLoadAgain = true }
        if isToLoadAgain || reference !== candidate { try await reference.require(isolation: isolation) }
        return reference
    }

    /// Returns a reference that begins with the loaded value, without loading it again.
    private func loaded<Key: SharedReaderKey>(
        _ key: Key, _ id: SendableKey, isolation: isolated (any Actor)?
    ) async throws -> StoredReference<Key.Value> {
        let outcome = AwaitableOutcome<VersionedRead<Key.Value>>()
        let seen = ObservedFileContent()
        Self.$current.withValue(self) {
            let continuation = LoadContinuation<Key.Value>(seen: seen) { outcome.set(.success($0)) }
            key.load(context: .userInitiated, continuation: continuation)
        }
        let reading = try await outcome.get()
        guard let value = try reading.result.get() else { throw MissingValue(key: "\(key)") }
        reading.whenTaken?()
        return StoredReference(value, key: key, id: id, store: self, seen: seen)
    }

    /// Removes a reference at its release. There may be a new one for the same key by then.
    func remove(_ reference: ObjectIdentifier, for id: SendableKey) {
        state.withLock { state in
            if state.entries[id]?.identity == reference { state.entries[id] = nil }
        }
    }
}

/// Any id as a key of a table that is shared between threads. Ids of different types are different.
///
/// Unchecked: created from a Sendable value only, and never changed.
struct SendableKey: Hashable, @unchecked Sendable {
    private let base: AnyHashable
    private let type: ObjectIdentifier

    init<ID: Hashable & Sendable>(_ id: ID) { self.init(id, of: ID.self) }

    /// Creates a key from an id that is unique among those of a type.
    init(_ id: some Hashable & Sendable, of type: any Any.Type) {
        base = AnyHashable(id)
        self.type = ObjectIdentifier(type)
    }
}
