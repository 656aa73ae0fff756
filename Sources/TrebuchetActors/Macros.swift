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
///   - delivery: what slow subscribers are sent: the newest value, or `.every(buffer: 256)` version.
///   - persisted: whether the server's store keeps the state. It is loaded before the actor is called; answers and updates
///     leave when what they show is written. See Docs/Guides/Persistence.md. Not for actors with `executor: .concurrent`.
///   - version: the form in which a persisted state is stored: a literal from 1, raised when `migrate` has more to do. What a
///     higher version has stored is an error of the actor's calls, and stays.
///   - migrate: makes what lower versions have stored into what the type reads, when the actor is loaded. Members that are lacking
///     then, or without it, take their values from the property's initial value; elements of arrays do not.
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
///   - buffer: events that are kept for subscribers who are behind: at least 1, at most 1,048,576 and 16 MiB of them; who falls
///     further behind loses the stream with the error `overflow`.
///   - persisted: whether the server's store keeps the events. Then they go on being counted after a restart, and clients that come
///     back get what was sent since, as does who observes with `observeMoves(since: bookmark)`. An event, and the answer of the call that
///     has sent it, leave when it is written, together with what that has changed of persisted states. See Docs/Guides/Persistence.md. Not
///     for actors with `executor: .concurrent`.
///   - keeping: how many persisted events are kept at least, in memory too, at most 1,048,576 and 4 MiB of them
///     (`ServerLimits.persistedEventBytes`); older ones go.
@attached(accessor, names: named(get))
@attached(peer, names: prefixed(`$`))
public macro StreamedEvents(buffer: Int = 256, persisted: Bool = false, keeping: Int = 1_000) =
    #externalMacro(module: "TrebuchetMacros", type: "StreamedEventsMacro")

/// Makes the client repeat a call of this `distributed func` if the connection broke before the response arrived.
///
/// The method still runs at most once. The server records the responses, for 60 seconds unless `ServerLimits.answerTime` says
/// otherwise, and answers a repeated call with the recorded response. After a restart, for example, it may be unable to
/// determine whether it has received the call. The call then ends with `unknownOutcome`, like a call of any other method. Calls
/// that change a persisted state of their actor are recorded across restarts. A call through a `@Resolvable` protocol is not
/// repeated, because the protocol does not contain the mark.
@attached(peer)
public macro Idempotent() = #externalMacro(module: "TrebuchetMacros", type: "IdempotentMacro")

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
