public import Distributed

/// A distributed actor marked `@Trebuchet`; the macro writes the conformance.
public protocol TrebuchetActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// What can be called and observed, by name.
    static var _dispatch: DispatchTable<Self> { get }
}

extension TrebuchetActor {
    static func hasMethod(_ name: String) -> Bool { _dispatch.methods.contains { $0.name == name } }
}
