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

    /// A class: Swift 6.3 crashes when it copies an optional struct with a weak reference that is nil.
    private final class Entry: Sendable {
        weak let reference: (any AnyObject & Sendable)?
        let identity: ObjectIdentifier

        init(_ reference: any AnyObject & Sendable) {
            self.reference = reference
            identity = ObjectIdentifier(reference)
        }
    }

    let memory = MemoryValues()
    let files: StoredFiles
    private let entries = Mutex<[SendableKey: Entry]>([:])

    /// - Parameter files: What file storage keys read and write. Default: the disk.
    public init(files: any FileStorage = DiskFileStorage()) { self.files = StoredFiles(in: files) }

    /// Values that are held by a wrapper.
    package var referenceCount: Int { entries.withLock { $0.count } }

    /// The reference of a key: the one that is held by somebody, else a new one, loaded and subscribed.
    func reference<Key: SharedReaderKey>(
        for key: Key, initialValue: () -> Key.Value
    ) -> StoredReference<Key.Value> {
        let id = SendableKey(key.id, of: Key.self)
        let held = entries.withLock { $0[id]?.reference }
        if let held = held as? StoredReference<Key.Value> { return held }
        let candidate = StoredReference(initialValue(), key: key, id: id, store: self)
        // Before others can see it, and with no lock held: whoever comes second finds it loaded, or loads one too.
        candidate.load(.initialValue(candidate.initialValue)) { _ in }
        let earlier = entries.withLock { entries in
            let earlier = entries[id]?.reference
            if earlier == nil { entries[id] = Entry(candidate) }
            return earlier
        }
        if let earlier = earlier as? StoredReference<Key.Value> { return earlier }
        candidate.subscribe()
        return candidate
    }

    /// The value that a key loads; throws when it has none.
    func required<Key: SharedReaderKey>(
        _ key: Key, isolation: isolated (any Actor)?
    ) async throws -> Key.Value {
        let outcome = Outcome<Key.Value?>()
        Self.$current.withValue(self) {
            key.load(context: .userInitiated, continuation: LoadContinuation { outcome.set($0) })
        }
        guard let value = try await outcome.get() else { throw MissingValue(key: "\(key)") }
        return value
    }

    /// Called as a reference goes. By then there may be a new one for the same key.
    func remove(_ reference: ObjectIdentifier, for id: SendableKey) {
        entries.withLock { entries in
            if entries[id]?.identity == reference { entries[id] = nil }
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
