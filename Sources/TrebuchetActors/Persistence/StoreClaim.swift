internal import Synchronization

/// A server's hold on its store for one use, which it alone has among the servers of its process.
///
/// States live in a server's memory and are written over what the store has: two servers on one store would each undo what the
/// other has written, and nobody would be told.
package final class StoreClaim: Sendable {
    private enum State { case free, held, over }

    /// Whose the stores are that are in use. A claim holds its store, so none of them can be another one by now.
    private static let holders = Mutex<Set<Use>>([])

    private struct Use: Hashable {
        let store: ObjectIdentifier
        /// Each use has namespaces of its own.
        let name: String
    }

    private let store: any StateStore
    private let use: Use?
    private let state = Mutex(State.free)

    /// - Parameter name: what it keeps there, `states`.
    package init(_ store: any StateStore, for name: String) {
        self.store = store
        use = Self.object(store).map { Use(store: $0, name: name) }
    }

    deinit { giveBack() }

    package func isAbout(_ store: any StateStore, for name: String) -> Bool {
        use.map { $0.name == name && $0.store == Self.object(store) } ?? false
    }

    /// The object that a claim is about; nil for a store that is a value, which nobody can tell from its copies.
    private static func object(_ store: any StateStore) -> ObjectIdentifier? {
        var store = store
        while let wrapping = store as? any WrappingStore { store = wrapping.wrapped }
        guard type(of: store) is AnyClass else { return nil }
        return ObjectIdentifier(store as AnyObject)
    }

    /// Takes the store, unless it is taken by this claim already.
    ///
    /// - Returns: whether it was free.
    /// - Throws: `inUse` while another server has it, `closed` when it was given back.
    @discardableResult
    package func take() throws(StateStoreError) -> Bool {
        try state.withLock { state throws(StateStoreError) in
            switch state {
            case .held: return false
            case .over: throw StateStoreError(.closed, "the server was shut down, and has no store any more")
            case .free: break
            }
            let isFree = use.map { use in Self.holders.withLock { $0.insert(use).inserted } }
            guard isFree != false else {
                throw StateStoreError(
                    .inUse,
                    "the store is in use by another server of this process, and two would undo each other's writes: shut that "
                        + "one down first, or give each a store of its own")
            }
            state = .held
            return true
        }
    }

    /// Lets go of it; it can be taken again unless `forGood`.
    package func giveBack(forGood: Bool = true) {
        state.withLock { state in
            if case .held = state, let use { _ = Self.holders.withLock { $0.remove(use) } }
            if case .over = state { return }
            state = forGood ? .over : .free
        }
    }
}

/// A store to which what each actor writes is a write of its own, which may fail by itself. Actors are owned by one node of several at a time.
package protocol PartitionedStore: StateStore {
    /// What an actor is owned under now, another number each time that it comes to this node; 0 when it is not this node's.
    func ownership(of actor: String) -> UInt64

    /// What a key of an actor has that another node may own, as of now.
    ///
    /// - Parameter seen: what was found before, so that only what has changed since comes.
    func look(at key: StateKey, after seen: PartitionSeen?) async throws(StateStoreError) -> PartitionLook

    /// Lets go of the log of an actor of which nothing is kept, if it is owned under that number.
    func remove(_ actor: String, ownedUnder ownership: UInt64) async throws(StateStoreError)

    /// The `@Idempotent` calls that its log has.
    func calls(of actor: String) async throws(StateStoreError) -> EarlierCalls

    /// The values that an actor has in a namespace, by their names.
    func values(of actor: String, in namespace: String) async throws(StateStoreError) -> [String: [UInt8]]
}

/// How far somebody has seen what an actor keeps.
package struct PartitionSeen: Sendable {
    package let fence: UInt64
    package let offset: UInt64
    /// The entry there; nil where a snapshot ends there. An engine that has lost entries gives their places to others.
    package let entry: Entry?

    package struct Entry: Sendable, Equatable {
        /// The place of the entry before, which it is read behind.
        package let fence: UInt64
        package let offset: UInt64
        /// Of its bytes.
        package let digest: UInt64

        package init(behind fence: UInt64, _ offset: UInt64, digest: UInt64) {
            (self.fence, self.offset, self.digest) = (fence, offset, digest)
        }
    }

    package init(fence: UInt64, offset: UInt64, entry: Entry? = nil) {
        (self.fence, self.offset, self.entry) = (fence, offset, entry)
    }
}

/// What is seen of a log of an actor.
package struct PartitionLook: Sendable {
    package enum Found: Sendable {
        /// All of it; nil when there is none.
        case whole(StoredLog?)
        /// What came behind what had been seen.
        case entries([LogEntry])
    }

    package let found: Found
    package let seen: PartitionSeen

    package init(_ found: Found, _ seen: PartitionSeen) { (self.found, self.seen) = (found, seen) }
}

/// A store in front of another one, which is what servers share.
package protocol WrappingStore: StateStore {
    var wrapped: any StateStore { get }
}
