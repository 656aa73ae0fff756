public import Distributed

/// A distributed actor marked `@Trebuchet`; the macro writes the conformance.
public protocol TrebuchetActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// What can be called and observed, by name.
    static var _dispatch: DispatchTable<Self> { get }
}
