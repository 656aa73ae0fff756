public import Distributed

/// A distributed actor marked `@Trebuchet`; the macro writes the conformance.
public protocol TrebuchetActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// What can be called and observed, by name.
    static var _dispatch: DispatchTable<Self> { get }
}

extension TrebuchetActor {
    /// Whether the method of this name is marked `@Idempotent`; nil when the dispatch table has none.
    static func isIdempotent(_ name: String) -> Bool? { _dispatch.methods.first { $0.name == name }?.isIdempotent }
}
