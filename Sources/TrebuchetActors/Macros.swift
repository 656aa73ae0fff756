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
// As a whole: its public types are those of filters, which users meet, and `ByteRange`, which documentation hides. The compiler drops
// the three as single imports, and as other names of theirs their members would be asked for by "import TrebuchetWire" where a user
// has the compiler ask for each import.
@_exported public import TrebuchetWire

/// Makes a distributed actor callable and observable over the network.
///
/// It adds the actor system, the executor, a dispatch table with one entry for each `distributed` method, and for each
/// `@StreamedState` property a way to observe it: `state` becomes `observeState`.
///
/// Where all properties have values an `init(actorSystem:)` need not be written: Swift makes one, as accessible as the actor.
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
/// - Parameters:
///   - delivery: what slow subscribers are sent: the newest value, or `.every(buffer: 256)` version.
///   - persisted: whether the server's store keeps the state. It is loaded before the actor is called; answers and updates
///     leave when what they show is written. See Docs/Persistence.md. Not for actors with `executor: .concurrent`.
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
/// `$moves.send(.left)` sends one; clients observe with `for try await move in await game.observeMoves()`. A state is what
/// is; an event is what happened, and who begins to observe gets what happens from then on.
///
/// - Parameters:
///   - buffer: events that are kept for subscribers who are behind: at least 1, at most 1,048,576 and 16 MiB of them; who falls
///     further behind loses the stream with the error `overflow`.
///   - persisted: whether the server's store keeps the events. Then they go on being counted after a restart, and clients that come
///     back get what was sent since, as does who observes with `observeMoves(since: bookmark)`. An event, and the answer of the call that
///     has sent it, leave when it is written, together with what that has changed of persisted states. See Docs/Persistence.md. Not
///     for actors with `executor: .concurrent`.
///   - keeping: how many persisted events are kept at least, in memory too, at most 1,048,576 and 4 MiB of them
///     (`ServerLimits.persistedEventBytes`); older ones go.
@attached(accessor, names: named(get))
@attached(peer, names: prefixed(`$`))
public macro StreamedEvents(buffer: Int = 256, persisted: Bool = false, keeping: Int = 1_000) =
    #externalMacro(module: "TrebuchetMacros", type: "StreamedEventsMacro")

/// Has the client repeat a call of this `distributed func` when the connection broke before the answer came.
///
/// The method runs at most once all the same: the server keeps its answers, for 60 seconds unless
/// `ServerLimits.answerTime` says otherwise, and gives a call that it has seen the answer of the first time. Where it
/// cannot know whether it has seen a call, as after a restart, the call ends with `unknownOutcome`, like those of all other
/// methods; calls that change a persisted state of their actor are known after a restart too. A call through a `@Resolvable`
/// protocol is not repeated: the protocol does not know of the mark.
@attached(peer)
public macro Idempotent() = #externalMacro(module: "TrebuchetMacros", type: "IdempotentMacro")

/// Keeps the arguments of this `distributed func` out of what the inspector shows, which has those of all other calls while somebody
/// looks: for passwords, codes and what else only the caller is to know. Logs, metrics and listeners never have arguments.
///
/// States and results are not kept out by it: `expose(_:as:inspectable:)` shows nothing of an actor.
@attached(peer)
public macro Redacted() = #externalMacro(module: "TrebuchetMacros", type: "RedactedMacro")

/// Gives a struct, or an enum with raw values, code that is made for it to read and write its JSON: for arguments, results and states
/// that are large or many. The type becomes `Codable`, if it does not say so.
///
///     @Wire struct Order {
///         var id: UUID
///         var lines: [Line]
///         var note: String?
///     }
///
/// The JSON is the same as without it, members in the order of their declaration, so that a type with it and one without are
/// interchangeable. Text that is not as we write it, as with members in another order, is read as by `Codable`: right, and no
/// faster. Members may be of any `Codable` type; those that have `@Wire` themselves, numbers, strings, `Bool`, `UUID` and `Date`, and
/// optionals and arrays of these, are coded fast, others as they code themselves. A member's type must be written, or be that of a literal.
///
/// A generic type, and one with `CodingKeys`, `init(from:)` or `encode(to:)` of its own, property wrappers, `lazy` properties or members
/// under `#if`, is coded by its `Codable` alone, and the compiler warns of that. Where these stand in an extension of their own, the
/// compiler finds two of them.
@attached(
    extension, conformances: _WireValue, Decodable, Encodable,
    names: named(CodingKeys), named(init(from:)), named(encode(to:)), named(init(_wire:)), named(_write(wire:)))
public macro Wire() = #externalMacro(module: "TrebuchetMacros", type: "WireMacro")
