internal import Synchronization

/// Who shares what: for each key the one value that its wrappers refer to.
///
/// A wrapper takes the store that is ``current`` when it is made. There is one for the process; a test takes its own:
///
///     SharedStore.$current.withValue(SharedStore(files: InMemoryFileStorage())) {
///         @Shared(.inMemory("count")) var count = 0
///     }
///
/// As any task-local value it reaches child tasks and `Task {}`, but not `Task.detached`, queues and threads.
public final class SharedStore: Sendable {
    /// The store of wrappers that are made without one.
    @TaskLocal public static var current = SharedStore()

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

    /// - Parameter files: What file storage keys read and write. Default: the disk.
    public init(files: any FileStorage = DiskFileStorage()) { self.files = StoredFiles(in: files) }

    /// Values that are held by a wrapper.
    package var referenceCount: Int { state.withLock { $0.entries.count } }

    /// The reference of a key: the one that is held by somebody, else a new one, loaded and subscribed.
    func reference<Key: SharedReaderKey>(
        for key: Key, initialValue: () -> Key.Value
    ) -> StoredReference<Key.Value> {
        findOrMake(key, initialValue).reference
    }

    private func findOrMake<Key: SharedReaderKey>(
        _ key: Key, _ initialValue: () -> Key.Value
    ) -> (reference: StoredReference<Key.Value>, isNew: Bool) {
        if let other = key as? any StandInKey<Key.Value> { return findOrMake(other.original, initialValue) }
        let id = SendableKey(key.id, of: Key.self)
        let (held, entered) = state.withLock { state -> ((any AnyObject & Sendable)?, UInt64) in
            if let held = state.entries[id]?.object { return (held, 0) }
            state.making[id, default: Making()].count += 1
            return (nil, state.making[id]?.entered ?? 0)
        }
        if let held = held as? StoredReference<Key.Value> { return (held, false) }
        let candidate = StoredReference(initialValue(), key: key, id: id, store: self)
        // Before others can see it, and with no lock held: whoever comes second finds it loaded, or loads one too.
        candidate.load(.initialValue(candidate.initialValue))
        var seen = entered
        while true {
            switch enter(candidate, id, unlessAfter: seen) {
            case .entered:
                candidate.subscribe()
                return (candidate, true)
            case .earlier(let earlier):
                // One of another type is of another key.
                if let earlier = earlier as? StoredReference<Key.Value> { return (earlier, false) }
                return (candidate, true)
            case .outdated(let entered):
                // Another one has come and gone, and what it has saved may be newer than what was loaded.
                seen = entered
                candidate.load(.initialValue(candidate.initialValue))
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
        let held = state.withLock { $0.entries[id]?.object }
        if let held = held as? StoredReference<Key.Value> {
            try await held.require(isolation: isolation)
            return held
        }
        let outcome = Outcome<Key.Value?>()
        Self.$current.withValue(self) {
            let continuation = LoadContinuation<Key.Value>(seen: SeenContent()) { outcome.set($0.result) }
            key.load(context: .userInitiated, continuation: continuation)
        }
        guard let value = try await outcome.get() else { throw MissingValue(key: "\(key)") }
        let (reference, isNew) = findOrMake(key) { value }
        // One that has come meanwhile may be older than what was loaded.
        if !isNew { try await reference.require(isolation: isolation) }
        return reference
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
