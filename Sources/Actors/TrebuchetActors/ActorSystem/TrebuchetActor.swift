public import Distributed

/// A distributed actor marked `@Trebuchet`; the macro generates the conformance.
public protocol TrebuchetActor: DistributedActor where ActorSystem == TrebuchetActorSystem {
    /// The methods and streams by name. Each access builds the table; `dispatch` returns a cached one.
    static var _dispatch: _DispatchTable<Self> { get }
    /// A Boolean value that indicates whether its actors inspect their observers; false by default. Such actors live on a
    /// reactor.
    static var _inspectsObservers: Bool { get }
    /// Returns the error for a connection that may not observe a stream; nil, the default, permits it. It is called when a
    /// stream starts and when a stream resumes over another connection. A connection that later loses its authorization has its
    /// streams ended.
    ///
    /// - Parameters:
    ///   - stream: the name on the wire, such as `observeState`.
    ///   - connection: the caller's connection; nil at a server that does not identify its callers.
    func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)?
}

extension TrebuchetActor {
    public static var _inspectsObservers: Bool { false }

    public func _refusal(ofStream stream: String, to connection: CallerConnection?) -> (any Error)? { nil }
}

/// The executor of a `@Trebuchet` actor.
public enum TrebuchetExecutor: Sendable {
    /// One reactor: calls run in place, without a context switch. Methods must not block.
    case reactor
    /// Swift's global pool, for actors with long computations.
    case concurrent
}
