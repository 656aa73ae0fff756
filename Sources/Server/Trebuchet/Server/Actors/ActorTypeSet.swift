internal import Synchronization
internal import TrebuchetActors

/// A set of actor types of one server. Lookups in an empty set cost one read.
final class ActorTypeSet: Sendable {
    private let isUsed = Atomic<Bool>(false)
    private let types = Mutex<Set<ObjectIdentifier>>([])

    /// Inserts a type. Returns false if the set has it already.
    @discardableResult
    func insert(_ type: ActorType) -> Bool {
        types.withLock { types in
            isUsed.store(true, ordering: .releasing)
            return types.insert(ObjectIdentifier(type)).inserted
        }
    }

    func contains(_ type: ActorType) -> Bool {
        isUsed.load(ordering: .acquiring) && types.withLock { $0.contains(ObjectIdentifier(type)) }
    }
}
