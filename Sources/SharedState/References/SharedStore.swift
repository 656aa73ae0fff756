internal import Relays
internal import Synchronization

/// Who shares what: for each key the one value that its wrappers refer to.
///
/// A wrapper takes the store that is ``current`` when it is made. There is one for the process; a test takes its own:
///
///     SharedStore.$current.withValue(SharedStore(files: InMemoryFileStorage())) {
///         @Shared(.inMemory("count")) var count = 0
///     }
///
/// In a process that runs tests the one for the process keeps files in memory: code that a test calls writes nothing to the disk
/// unless the test takes `SharedStore()`.
///
/// As any task-local value it reaches child tasks and `Task {}`, but not `Task.detached`, queues and threads.
public final class SharedStore: Sendable {
    /// The store of wrappers that are made without one.
    @TaskLocal public static var current = SharedStore(
        files: TestProcess.isCurrent ? InMemoryFileStorage() : DiskFileStorage())

    private struct State {
        var entries: [SendableKey: WeakEntry] = [:]
        /// The keys for which references are being made.
        var making: [SendableKey: Making] = [:]
    }

    /// What who makes a reference has to know of others who have made one meanwhile.
    private struct Making {
        var count = 0
        /// How many were entered.
        var entered: UInt64 = 0
    }

    let memory = MemoryValues()
    let files: StoredFiles
    private let state = Mutex(State())

    /// - Parameter files: What file storage keys read and write. Default: the disk, also in tests.
    public init(files: any FileStorage = DiskFileStorage()) { self.files = StoredFiles(in: files) }

    /// Values that are held by a wrapper.
    package var referenceCount: Int { state.withLock { $0.entries.count } }

    /// The reference of a key: the one that is held by somebody, else a new one, loaded and subscribed.
    func reference<Key: SharedReaderKey>(
        for key: Key, initialValue: () -> Key.Value
    ) -> StoredReference<Key.Value> {
        findOrMake(key, initialValue) { $0.load(.initialValue($0.initialValue)) }
    }

    /// The reference of a key, which is being loaded, once, and what that comes to.
    func loading<Key: SharedReaderKey>(
        _ key: Key, initialValue: () -> Key.Value
    ) -> (reference: StoredReference<Key.Value>, outcome: Outcome<Void>) {
        func load(_ reference: StoredReference<Key.Value>, _ context: LoadContext<Key.Value>) -> Outcome<Void> {
            let outcome = Outcome<Void>()
            reference.load(context) { outcome.set($0.result.map { _ in }) }
            return outcome
        }
        var begun: (reference: StoredReference<Key.Value>, outcome: Outcome<Void>)?
        let reference = findOrMake(key, initialValue) { begun = ($0, load($0, .initialValue($0.initialValue))) }
        if let begun, begun.reference === reference { return begun }
        return (reference, load(reference, .userInitiated))
    }

    /// - Parameter load: begins to load a new one.
    private func findOrMake<Key: SharedReaderKey>(
        _ key: Key, _ initialValue: () -> Key.Value, load: (StoredReference<Key.Value>) -> Void
    ) -> StoredReference<Key.Value> {
        if let other = key as? any StandInKey<Key.Value> { return findOrMake(other.original, initialValue, load: load) }
        let id = SendableKey(key.id, of: Key.self)
        let (held, entered) = beginMaking(id)
        if let held = held as? StoredReference<Key.Value> { return held }
        let candidate = StoredReference(initialValue(), key: key, id: id, store: self)
        // Before others can see it, and with no lock held: whoever comes second finds it loaded, or loads one too.
        load(candidate)
        return enter(candidate, id, unlessAfter: entered) { load(candidate) }
    }

    /// Who is there; else the caller makes one, and ends that with `enter` or `giveUpMaking`.
    private func beginMaking(_ id: SendableKey) -> (held: (any AnyObject & Sendable)?, entered: UInt64) {
        state.withLock { state in
            if let held = state.entries[id]?.object { return (held, 0) }
            state.making[id, default: Making()].count += 1
            return (nil, state.making[id]?.entered ?? 0)
        }
    }

    private func giveUpMaking(_ id: SendableKey) {
        state.withLock { state in
            state.making[id]?.count -= 1
            if state.making[id]?.count == 0 { state.making[id] = nil }
        }
    }

    /// Enters and subscribes what was made, unless another is there by now: then it is that one.
    ///
    /// - Parameter loadAgain: called when another has come and gone since `entered`: what it has saved may be newer than what was
    ///   loaded.
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
                // One of another type is of another key.
                return earlier as? StoredReference<Value> ?? candidate
            case .outdated(let entered):
                seen = entered
                loadAgain()
            }
        }
    }

    private enum Entering {
        case entered
        case earlier(any AnyObject & Sendable)
        case outdated(UInt64)
    }

    /// Enters what was made, unless another is there, or was since `seen` had been entered.
    private func enter(_ candidate: any AnyObject & Sendable, _ id: SendableKey, unlessAfter seen: UInt64) -> Entering {
        state.withLock { state in
            let earlier = state.entries[id]?.object
            guard var making = state.making[id] else { preconditionFailure("a reference is entered by who makes it") }
            if earlier == nil, making.entered != seen { return .outdated(making.entered) }
            making.count -= 1
            if earlier == nil { making.entered += 1 }
            state.making[id] = making.count > 0 ? making : nil
            if let earlier { return .earlier(earlier) }
            state.entries[id] = WeakEntry(candidate)
            return .entered
        }
    }

    /// The reference of a key, just loaded; throws what that fails with, and when there is nothing to load.
    func required<Key: SharedReaderKey>(
        _ key: Key, isolation: isolated (any Actor)?
    ) async throws -> StoredReference<Key.Value> {
        if let other = key as? any StandInKey<Key.Value> {
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
        // One that has come meanwhile may be older than what was loaded, or newer.
        var isToLoadAgain = false
        let reference = enter(candidate, id, unlessAfter: entered) { isToLoadAgain = true }
        if isToLoadAgain || reference !== candidate { try await reference.require(isolation: isolation) }
        return reference
    }

    /// A reference that begins with what the key has loaded, and does not load it a second time.
    private func loaded<Key: SharedReaderKey>(
        _ key: Key, _ id: SendableKey, isolation: isolated (any Actor)?
    ) async throws -> StoredReference<Key.Value> {
        let outcome = Outcome<Reading<Key.Value>>()
        let seen = SeenContent()
        Self.$current.withValue(self) {
            let continuation = LoadContinuation<Key.Value>(seen: seen) { outcome.set(.success($0)) }
            key.load(context: .userInitiated, continuation: continuation)
        }
        let reading = try await outcome.get()
        guard let value = try reading.result.get() else { throw MissingValue(key: "\(key)") }
        reading.whenTaken?()
        return StoredReference(value, key: key, id: id, store: self, seen: seen)
    }

    /// Called as a reference goes. By then there may be a new one for the same key.
    func remove(_ reference: ObjectIdentifier, for id: SendableKey) {
        state.withLock { state in
            if state.entries[id]?.identity == reference { state.entries[id] = nil }
        }
    }
}

/// Any id as a key of a table that is shared between threads; ids of different types are different.
///
/// Unchecked: made of a Sendable value alone, and never changed.
struct SendableKey: Hashable, @unchecked Sendable {
    private let base: AnyHashable
    private let type: ObjectIdentifier

    init<ID: Hashable & Sendable>(_ id: ID) { self.init(id, of: ID.self) }

    /// An id that is unique among those of a type.
    init(_ id: some Hashable & Sendable, of type: any Any.Type) {
        base = AnyHashable(id)
        self.type = ObjectIdentifier(type)
    }
}
