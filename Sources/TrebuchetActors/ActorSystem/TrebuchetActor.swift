public import Distributed

/// A distributed actor marked `@Trebuchet`; the macro writes the conformance.
public protocol TrebuchetActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// What can be called and observed, by name. It is built anew at each use; `dispatch` is kept.
    static var _dispatch: _DispatchTable<Self> { get }
    /// Whether its actors look at who observes them; false by default. Such actors live on a reactor.
    static var _looksAtObservers: Bool { get }
    /// Why a connection may not observe a stream; nil, the default, when it may. Asked when a stream begins, and when one is taken up
    /// again over another connection; a connection that loses its right later has its streams ended.
    ///
    /// - Parameters:
    ///   - stream: `observeState`
    ///   - connection: nil at a server that does not identify its callers.
    func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)?
}

extension TrebuchetActor {
    public static var _looksAtObservers: Bool { false }

    public func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)? { nil }
}

/// Where a `@Trebuchet` actor runs.
public enum TrebuchetExecutor: Sendable {
    /// On one reactor: calls run in place, without a hop. Methods must not block.
    case reactor
    /// On Swift's global pool: for actors that compute for long.
    case concurrent
}
