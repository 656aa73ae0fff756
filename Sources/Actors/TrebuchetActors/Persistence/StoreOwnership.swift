internal import Synchronization

/// The exclusive use of a store by one server among the servers of its process.
///
/// A server keeps states in memory and overwrites the store's content. Two servers with one store would overwrite each other's
/// writes without an error.
package final class StoreOwnership: Sendable {
    /// The state of a claim; `over` is permanent.
    private enum State { case free, owned, over }

    /// The stores in use. Each claim retains its store, so that no identifier is reused.
    private static let holders = Mutex<Set<Use>>([])

    /// One use of one store.
    private struct Use: Hashable {
        let store: ObjectIdentifier
        /// The name of the use; each use has separate namespaces.
        let name: String
    }

    private let store: any StateStore
    private let use: Use?
    private let state = Mutex(State.free)

    /// Creates a claim.
    ///
    /// - Parameter name: the kind of stored data, such as `states`.
    package init(_ store: any StateStore, for name: String) {
        self.store = store
        use = Self.object(store).map { Use(store: $0, name: name) }
    }

    deinit { release() }

    package func isClaim(on store: any StateStore, for name: String) -> Bool {
        use.map { $0.name == name && $0.store == Self.object(store) } ?? false
    }

    /// Returns the object of a store; nil for a store that is a value type, whose copies cannot be distinguished.
    private static func object(_ store: any StateStore) -> ObjectIdentifier? {
        var store = store
        while let wrapping = store as? any WrappingStore { store = wrapping.wrapped }
        guard type(of: store) is AnyClass else { return nil }
        return ObjectIdentifier(store as AnyObject)
    }

    /// Acquires the store, unless this claim has it already.
    ///
    /// - Returns: whether it was free.
    /// - Throws: `inUse` while another server uses it, `closed` after it was released permanently.
    @discardableResult
    package func acquire() throws(StateStoreError) -> Bool {
        try state.withLock { state throws(StateStoreError) in
            switch state {
            case .owned: return false
            case .over: throw StateStoreError(.closed, "the server has shut down and released its store")
            case .free: break
            }
            let isFree = use.map { use in Self.holders.withLock { $0.insert(use).inserted } }
            guard isFree != false else {
                throw StateStoreError(
                    .inUse,
                    "the store is in use by another server of this process, and their writes would conflict: shut down that "
                        + "server first, or give each server its own store")
            }
            state = .owned
            return true
        }
    }

    /// Releases the store; it can be acquired again unless `permanently` is true.
    package func release(permanently: Bool = true) {
        state.withLock { state in
            if case .owned = state, let use { _ = Self.holders.withLock { $0.remove(use) } }
            if case .over = state { return }
            state = permanently ? .over : .free
        }
    }
}

/// A store in which the writes of each actor are separate and may fail independently. One node of a cluster owns an actor at a
/// time.
package protocol PerActorStore: StateStore {
    /// Returns the current ownership number of an actor, which changes each time this node becomes its owner; 0 if this node
    /// does not own it.
    func ownership(of actor: String) -> UInt64

    /// Reads the log of an actor that another node may own.
    ///
    /// - Parameter seen: the position of an earlier read, so that only later changes are returned.
    func readLog(at key: StateKey, after seen: ActorLogPosition?) async throws(StateStoreError) -> ActorLogReadResult

    /// Deletes the log of an actor without handoff state, if it is owned under that number.
    func remove(_ actor: String, ownedUnder ownership: UInt64) async throws(StateStoreError)

    /// Returns the `@Idempotent` calls in the actor's log.
    func calls(of actor: String) async throws(StateStoreError) -> IdempotencyIndex

    /// Returns the values of an actor in a namespace, by their names.
    func values(of actor: String, in namespace: String) async throws(StateStoreError) -> [String: [UInt8]]
}

/// The position up to which a reader has read an actor's log.
package struct ActorLogPosition: Sendable {
    package let fence: UInt64
    package let offset: UInt64
    /// The entry at the position; nil after a snapshot. Identifies the entry, because a coordination store that has lost
    /// entries reuses their positions.
    package let entry: Entry?

    /// The identity of an entry.
    package struct Entry: Sendable, Equatable {
        /// The position of the previous entry, after which it is read.
        package let fence: UInt64
        package let offset: UInt64
        /// The digest of its bytes.
        package let digest: UInt64

        package init(behind fence: UInt64, _ offset: UInt64, digest: UInt64) {
            (self.fence, self.offset, self.digest) = (fence, offset, digest)
        }
    }

    package init(fence: UInt64, offset: UInt64, entry: Entry? = nil) {
        (self.fence, self.offset, self.entry) = (fence, offset, entry)
    }
}

/// The result of a read of an actor's log.
package struct ActorLogReadResult: Sendable {
    /// The content that was read.
    package enum Found: Sendable {
        /// The whole log; nil if there is none.
        case complete(StoredLog?)
        /// The entries after the position of the earlier read.
        case entries([LogEntry])
    }

    package let found: Found
    package let seen: ActorLogPosition

    package init(_ found: Found, _ seen: ActorLogPosition) { (self.found, self.seen) = (found, seen) }
}

/// A store that wraps another one; servers share the wrapped store.
package protocol WrappingStore: StateStore {
    var wrapped: any StateStore { get }
}
