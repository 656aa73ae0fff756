public import Distributed

/// A distributed actor marked `@Trebuchet`; the macro writes the conformance.
public protocol TrebuchetActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// What can be called and observed, by name. It is built anew at each use; `dispatch` is kept.
    static var _dispatch: DispatchTable<Self> { get }
}

extension TrebuchetActor {
    /// The dispatch table, built once.
    static var dispatch: DispatchTable<Self> { ActorTypes.of(Self.self).table }

    /// What callers know of the method of this name; nil when the dispatch table has none.
    static func entry(_ name: String) -> (isIdempotent: Bool, generics: Int)? {
        dispatch.methods.first { $0.name == name }.map { ($0.isIdempotent, $0.generics) }
    }
}
