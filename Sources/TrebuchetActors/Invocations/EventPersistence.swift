internal import Distributed

/// How the persisted events of an actor are found.
struct EventPersistence<A: DistributedActor>: Sendable {
    /// `moves`
    let property: String
    /// How many are kept.
    let keeping: @Sendable (isolated A) -> Int
    /// What sends them, and whether nobody has asked for it before.
    let source: @Sendable (isolated A, SystemShard) -> (source: EventSource, isNew: Bool)
}
