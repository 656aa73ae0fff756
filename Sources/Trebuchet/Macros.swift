@_exported public import Distributed
@_exported public import struct Networking.SocketAddress
@_exported public import struct Networking.TLSClientSettings
@_exported public import struct Networking.TLSServerSettings
@_exported public import struct Networking.TransportError
@_exported public import class Relays.StateRelay
@_exported public import struct WebSockets.HTTPHeaders
@_exported public import struct WebSockets.HTTPRequestHead
@_exported public import struct WebSockets.WebSocketCompression

/// Makes a distributed actor callable and observable over the network.
///
/// It adds the actor system, the executor, a dispatch table with one entry for each `distributed` method, and for each
/// `@StreamedState` property a way to observe it: `state` becomes `observeState`.
///
/// - Parameter executor: where the actor runs. By default on one reactor, where calls run in place as they arrive; use
///   `.concurrent` for an actor whose methods compute for long or block their thread.
@attached(
    member, names: named(ActorSystem), named(unownedExecutor), named(_dispatch), named(StreamingMethod), arbitrary)
@attached(extension, conformances: TrebuchetActor, StreamingActor)
public macro Trebuchet(executor: TrebuchetExecutor = .reactor) =
    #externalMacro(module: "TrebuchetMacros", type: "TrebuchetMacro")

/// Makes a stored property of a `@Trebuchet` actor a state that clients can observe.
///
/// Every change, through assignment or in place, is sent to those who observe it. The type must be
/// `Codable & Sendable`.
///
/// - Parameter persisted: whether the server's store keeps the state. It is loaded before the actor is called; answers and
///   updates leave when what they show is written. See Docs/Persistence.md. Not for actors with `executor: .concurrent`.
@attached(accessor, names: named(didSet))
@attached(peer, names: arbitrary)
public macro StreamedState(persisted: Bool = false) =
    #externalMacro(module: "TrebuchetMacros", type: "StreamedStateMacro")

/// Where a `@Trebuchet` actor runs.
public enum TrebuchetExecutor: Sendable {
    /// On one reactor: calls run in place, without a hop. Methods must not block.
    case reactor
    /// On Swift's global pool: for actors that compute for long.
    case concurrent
}
