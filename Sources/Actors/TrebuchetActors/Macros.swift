@_exported public import struct Deltas.DeltaMember
@_exported public import protocol Deltas.DeltaRecord
@_exported public import protocol Deltas.DeltaState
@_exported public import struct Deltas.DeltaValue
@_exported public import struct Deltas.KeyedCollection
@_exported public import struct Deltas.StateChanges
@_exported public import struct Deltas.StateChangesError
@_exported public import Distributed
@_exported public import class Relays.StateRelay
@_exported public import struct Transports.SocketAddress
// Exported as a whole. Its public types are those of filters, which apps use, and `ByteRange`, which the documentation hides.
// The compiler does not re-export the three as single imports. Under a type alias the compiler asks for "import TrebuchetWire"
// where an app checks member imports.
@_exported public import TrebuchetWire

/// Makes a distributed actor callable and observable over the network.
///
/// The macro adds the actor system, the executor, and a dispatch table with an entry for each `distributed` method. For each
/// `@StreamedState` property it adds a way to observe it: `observeState` for `state`.
///
/// If all properties have initial values, `init(actorSystem:)` is optional: Swift generates it with the actor's access level.
///
/// - Parameter executor: the executor of the actor. By default one reactor, where calls run in place as they arrive. Use
///   `.concurrent` for an actor whose methods compute for long or block their thread.
@attached(
    member, names: named(ActorSystem), named(unownedExecutor), named(_dispatch), named(StreamingMethod), arbitrary)
@attached(extension, conformances: TrebuchetActor, StreamingActor)
public macro Trebuchet(executor: TrebuchetExecutor = .reactor) =
    #externalMacro(module: "TrebuchetMacros", type: "TrebuchetMacro")

/// Makes a stored property of a `@Trebuchet` actor a state that clients can observe.
///
/// Every change, through assignment or in place, is sent to its subscribers. The type must be `Codable & Sendable`.
///
/// - Parameters:
///   - delivery: The values for slow subscribers: the newest one, or every version (`.every(buffer: 256)`).
///   - persisted: True if the server's store persists the state. It is loaded before the first call of the actor. Responses and
///     updates are sent after the values that they show are written. See Docs/Guides/Persistence.md. Not for actors with
///     `executor: .concurrent`.
///   - version: The format of a persisted state: a literal from 1, to be increased when `migrate` changes. Calls of the actor fail
///     if the stored version is higher; the stored value is kept.
///   - migrate: Converts values of lower versions when the actor is loaded. Members that are missing after it, or without it, take
///     their values from the property's initial value; elements of arrays do not.
@attached(accessor, names: named(didSet))
@attached(peer, names: arbitrary)
public macro StreamedState(
    delivery: StreamDelivery = .latest, persisted: Bool = false, version: Int = 1, migrate: StateMigration? = nil
) =
    #externalMacro(module: "TrebuchetMacros", type: "StreamedStateMacro")

/// Makes a property of a `@Trebuchet` actor a stream of events: each event goes to every subscriber, in order.
///
///     @StreamedEvents var moves: Move
///
/// `$moves.send(.left)` sends an event; clients observe with `for try await move in await game.observeMoves()`. A state has a
/// current value; an event does not, and a new subscriber receives only later events.
///
/// - Parameters:
///   - buffer: The number of events buffered for slow subscribers: at least 1, at most 1,048,576 and 16 MiB. The stream of a
///     subscriber that falls further behind ends with `overflow`.
///   - persisted: True if the server's store persists the events. Then their numbers continue after a restart. Clients that reconnect,
///     and clients that observe with `observeMoves(since: bookmark)`, receive all later events. An event, and the response of the call
///     that sent it, are sent after the event and the persisted states that the call changed are written. See
///     Docs/Guides/Persistence.md. Not for actors with `executor: .concurrent`.
///   - keeping: The number of newest events that are persisted and in memory, at most 1,048,576 and 4 MiB
///     (`ServerLimits.persistence.eventBytes`). Older events are deleted.
@attached(accessor, names: named(get))
@attached(peer, names: prefixed(`$`))
public macro StreamedEvents(buffer: Int = 256, persisted: Bool = false, keeping: Int = 1_000) =
    #externalMacro(module: "TrebuchetMacros", type: "StreamedEventsMacro")

/// Makes the client repeat a call of this `distributed func` if the connection broke before the response arrived.
///
/// The method runs at most once on one server. In a cluster the next owner runs a repeated call of which it
/// finds no record. The server records the responses, for 60 seconds unless `ServerLimits.idempotency.retention` says
/// otherwise, and answers a repeated call with the recorded response. After a restart, for example, it may be unable to
/// determine whether it has received the call. The call then ends with `unknownOutcome`, like a call of any other method. Calls
/// that change a persisted state of their actor are recorded across restarts. A call through a `@Resolvable` protocol is not
/// repeated, because the protocol does not contain the mark.
@attached(peer)
public macro Idempotent() = #externalMacro(module: "TrebuchetMacros", type: "IdempotentMacro")

/// Makes this `distributed func` a route over HTTP, at a server that adds the routes of its actor type with `routes.serve(_:as:)`:
///
///     @HTTP(.post, "/orders/:id/items")
///     distributed func addItem(id: String, product: String, count: Int?) throws -> Order { … }
///
/// Parameters of the path have the names of the method's parameters: their labels, or their names if they have no label. The other
/// arguments are the members of a JSON object in the body, or items of the query for `.get` and `.delete`, which have no body. A missing
/// argument is nil if its type is an optional. Parameters in a path or a query are of the types `String`, `UUID`, `Bool`, integers and
/// floating-point numbers. The result is JSON, and an error is a problem document. See Docs/Guides/HTTP.md.
///
/// - Parameters:
///   - method: The method of requests. A method that changes something is not for `.get`, which links of other pages can send.
///   - path: A path, such as `/orders/:id`, as for other routes of a server.
@attached(peer)
public macro HTTP(_ method: HTTPRouteMethod, _ path: String) =
    #externalMacro(module: "TrebuchetMacros", type: "HTTPMacro")

/// Hides the arguments of this `distributed func` from the inspector, which shows those of all other calls while it is used.
/// For passwords, codes and other data that only the caller may know. Logs, metrics and event handlers never contain arguments.
///
/// States and results are not hidden: `expose(_:as:inspectable:)` hides a whole actor.
@attached(peer)
public macro Redacted() = #externalMacro(module: "TrebuchetMacros", type: "RedactedMacro")

/// Generates specialized JSON code for a struct, or an enum with raw values: for arguments, results and states that are large
/// or frequent. The type becomes `Codable`, if it is not declared so.
///
///     @Wire struct Order {
///         var id: UUID
///         var lines: [Line]
///         var note: String?
///     }
///
/// The JSON is the same as without the macro, with members in the order of their declaration. A type with the macro and one
/// without it are interchangeable. Text in another form, such as with members in another order, is decoded as by `Codable`:
/// correctly, but no faster. Members may be of any `Codable` type. Fast are those with `@Wire`, numbers, strings, `Bool`,
/// `UUID` and `Date`, and optionals and arrays of these; others use their `Codable` code. A member's type must be written, or
/// be that of a literal.
///
/// Some types are coded only by their `Codable` conformance, with a compiler warning: generic types, types with custom
/// `CodingKeys`, `init(from:)` or `encode(to:)`, and types with property wrappers, `lazy` properties or members under `#if`. If
/// a custom implementation is in an extension, the compiler reports a redeclaration.
@attached(
    extension, conformances: _WireValue, Decodable, Encodable,
    names: named(CodingKeys), named(init(from:)), named(encode(to:)), named(init(_wire:)), named(_write(wire:)))
public macro Wire() = #externalMacro(module: "TrebuchetMacros", type: "WireMacro")
