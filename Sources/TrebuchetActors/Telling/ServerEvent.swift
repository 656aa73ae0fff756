public import Transports

/// Something that happened at a server, as its listeners are told it.
///
/// It says who and where, never what: neither arguments and results of calls nor credentials are in it.
public enum ServerEvent: Sendable {
    /// A connection was let in.
    case connectionOpened(Peer)
    /// A connection has ended, after `lasted`.
    case connectionClosed(Peer, lasted: Duration, why: Closing)
    /// Somebody was not let in, or what he asked for by HTTP was refused: the status and the words that he was answered with. The address is nil
    /// where it is not known.
    case connectionRefused(address: SocketAddress?, status: Int, reason: String)
    /// Somebody else is at the other end of a connection from now on: who has signed in, or nobody (`principal` is nil).
    case authenticated(Peer)
    /// A call has begun.
    case callBegan(Call)
    /// A call was answered, with an error of this code or none, after `took`; or nobody is there any more to be answered.
    case callEnded(Call, took: Duration, error: TrebuchetError.Code?)
    /// A call is answered with an error that its method threw, or that says why its arguments do not fit.
    case callFailed(Failure)
    /// The method of a call, by its number, has named another actor of the server, or called it.
    case callReached(call: UInt64, actor: String)
    /// A call, or a stream that was to begin, was refused before anything was done for it: with an error of this code, and these words. `target`
    /// is the method or the stream that was asked for, `actor` the name; both are as the client has sent them, cut after 128 bytes.
    case callRefused(Peer, actor: String, target: String, error: TrebuchetError.Code, reason: String)
    /// A state has a new version that somebody is sent, or an event was sent.
    case versionMade(Version)
    /// A version was handed to a connection.
    case delivered(Delivery)
    /// A connection was sent a version without some of those before it: it is behind `from`, and gets `to`.
    case skipped(Stream, connection: UInt64, from: UInt64, to: UInt64)
    /// A connection takes nothing now: it is behind the newest version, and was sent that of this number last.
    case behind(Stream, connection: UInt64, at: UInt64)
    /// A stream begins, or goes on over another connection.
    case streamBegan(Stream, Peer, StreamBeginning)
    /// A stream has ended for a connection, for this reason (`clientUnsubscribed`, `actorTerminated`, `error`, …).
    case streamEnded(Stream, connection: UInt64, reason: String)
    /// An actor stands ready that was made or loaded when it was called.
    case actorMade(name: String, type: String)
    /// An actor that nobody uses was let go, or goes to another node.
    case actorLetGo(name: String, type: String)
    /// What has changed was written to the store, or was not: `error` says why.
    case stored(actors: Int, took: Duration, error: String?)
    /// Something was refused as a limit was reached: `setting` is its name in `ServerLimits`.
    case limitReached(setting: String, Peer?)
    /// A method, or something else, holds up all others of its reactor: `milliseconds` so far, or in the end when it `isOver`.
    case reactorHeld(reactor: String, by: String, milliseconds: Int, isOver: Bool)
    /// The server is to end: it says that it is not ready, and clients are sent away later.
    case draining
    /// The server has ended.
    case ended
    /// This node owns a slot of the cluster from now on, under a lease with that fence.
    case slotTaken(Int, fence: UInt64)
    /// This node does not own a slot any more.
    case slotLost(Int)
    /// A line that is for people.
    case line(Level, String)
    /// A part of a trace that is kept has ended.
    case spanEnded(TraceSpan)

    /// Kinds of events. Each listener names those that it wants; of others nothing is made.
    public struct Kinds: OptionSet, Sendable {
        /// A bit for each kind.
        public let rawValue: UInt32
        /// Kinds by their bits.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Connections that come and go, and who is behind them.
        public static let connections = Kinds(rawValue: 1 << 0)
        /// Calls that begin and end.
        public static let calls = Kinds(rawValue: 1 << 1)
        /// Versions of states, with the calls that made them.
        public static let versions = Kinds(rawValue: 1 << 2)
        /// What each connection is sent of them, and what it is not.
        public static let deliveries = Kinds(rawValue: 1 << 3)
        /// Streams that begin, go on and end.
        public static let streams = Kinds(rawValue: 1 << 4)
        /// Actors that are made and let go.
        public static let actors = Kinds(rawValue: 1 << 5)
        /// Writes to the store.
        public static let store = Kinds(rawValue: 1 << 6)
        /// Limits that are reached.
        public static let limits = Kinds(rawValue: 1 << 7)
        /// What becomes of the server itself: reactors that are held up, its end, slots, lines for people.
        public static let server = Kinds(rawValue: 1 << 8)
        /// Connections and requests that are refused.
        public static let refusals = Kinds(rawValue: 1 << 9)
        /// Parts of traces. Only who listens for these has the server trace anything.
        public static let spans = Kinds(rawValue: 1 << 10)
        /// Those for which calls have numbers. Asked for with each call, so none is made of others there.
        package static var callsOrVersions: Kinds { Kinds(rawValue: 1 << 1 | 1 << 2) }
        /// Those for which it is looked at a call more closely.
        package static var callsVersionsOrSpans: Kinds { Kinds(rawValue: 1 << 1 | 1 << 2 | 1 << 10) }
        /// The arguments of calls, beside these: for the inspector alone.
        package static var arguments: Kinds { Kinds(rawValue: 1 << 11) }
        /// All of them.
        public static let all = Kinds(rawValue: .max)
    }

    /// How much a line matters, by the names of swift-log.
    public enum Level: String, Sendable, CaseIterable, Comparable {
        /// Each version and each delivery.
        case trace
        /// Calls, streams and actors.
        case debug
        /// Connections, and who signs in.
        case info
        /// Refusals, and what becomes of the server.
        case notice
        /// Limits that are reached, reactors that are held up.
        case warning
        /// What has failed, and somebody should look at.
        case error
        /// What ends the server.
        case critical

        public static func < (one: Level, other: Level) -> Bool { one.place < other.place }

        private var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    /// A connection, and who is behind it.
    public struct Peer: Sendable, Equatable {
        /// No other connection of the server has it, or ever had it.
        public let connection: UInt64
        /// The address of the other end; nil for a client in this process, and where it is not known.
        public let address: SocketAddress?
        /// Who is signed in; nil for nobody.
        public let principal: String?

        package init(connection: UInt64, address: SocketAddress?, principal: String?) {
            self.connection = connection
            self.address = address
            self.principal = principal
        }
    }

    /// A call of a client.
    public struct Call: Sendable, Equatable {
        /// No other call that this server tells of has it. Versions name the calls by it that made them.
        public let number: UInt64
        /// Whose call it is.
        public let peer: Peer
        /// The name of the actor.
        public let actor: String
        /// The type of the actor, as `Demo.TodoList`.
        public let type: String
        /// The method, as `addTodo(title:)`.
        public let method: String
        /// Which trace it is part of; nil for none.
        public let trace: TraceContext?
        /// Nil where nobody has asked for them.
        package let arguments: Arguments?

        /// What a method was called with, as far as it may be known.
        package enum Arguments: Sendable, Equatable {
            /// A list, in JSON.
            case json([UInt8])
            case tooLong(bytes: Int)
            case redacted
        }

        package init(
            number: UInt64, peer: Peer, actor: String, type: String, method: String, trace: TraceContext? = nil,
            arguments: Arguments? = nil
        ) {
            (self.trace, self.arguments) = (trace, arguments)
            self.number = number
            self.peer = peer
            self.actor = actor
            self.type = type
            self.method = method
        }
    }

    /// What is observed of an actor.
    public struct Stream: Sendable, Equatable {
        /// The name of the actor.
        public let actor: String
        /// The type of the actor.
        public let type: String
        /// The stream, as `observeState`.
        public let target: String

        package init(actor: String, type: String, target: String) {
            self.actor = actor
            self.type = type
            self.target = target
        }
    }

    /// How a stream begins.
    public enum StreamBeginning: String, Sendable {
        /// For the first time.
        case first
        /// A client goes on behind the version that it has.
        case inPlace
        /// A client that is back gets the whole value, as what it had leads nowhere.
        case anew
        /// A client that is back is told that it has missed events.
        case tooLate
    }

    /// A version of a state, or an event.
    public struct Version: Sendable, Equatable {
        /// What it is a version of.
        public let stream: Stream
        /// The number of the version, which goes up, and may leave numbers out: each change has one, and changes that are sent together are one
        /// version with the number of the last.
        public let number: UInt64
        /// The calls whose changes it has, by their numbers, each once, in their order: several when they were merged. Empty when no call of a client
        /// made it, or none that was told of. At most 1,000: `moreCalls` are not named.
        public let calls: [UInt64]
        /// So many calls have a part in it beside those that are named: beyond 10,000 some may be counted more than once.
        public let moreCalls: Int
        /// Whether something else has a part in it than calls that were told of, as code of the server, or a task that goes on behind its call.
        public let hasOtherCauses: Bool
        /// Of what is sent of it, in bytes.
        public let bytes: Int
        /// Whether that is the difference from the one before.
        public let isPatch: Bool
        /// Bytes that were encoded for readers in this process alone; 0 where somebody observes it over the network.
        package let bytesForReaders: Int

        package init(
            stream: Stream, number: UInt64, calls: [UInt64], moreCalls: Int, hasOtherCauses: Bool = false, bytes: Int,
            isPatch: Bool, bytesForReaders: Int = 0
        ) {
            self.bytesForReaders = bytesForReaders
            self.stream = stream
            self.number = number
            self.calls = calls
            self.moreCalls = moreCalls
            self.hasOtherCauses = hasOtherCauses
            self.bytes = bytes
            self.isPatch = isPatch
        }
    }

    /// What a connection is sent of a stream.
    public struct Delivery: Sendable, Equatable {
        /// In which form.
        public enum Form: String, Sendable {
            /// The difference from the version before.
            case patch
            /// The whole value.
            case whole
            /// An event.
            case event
        }

        /// Of what.
        public let stream: Stream
        /// Whereto; 0 for a reader in this process.
        public let connection: UInt64
        /// The number of the version.
        public let number: UInt64
        /// In which form it goes there.
        public let form: Form
        /// How many bytes that are.
        public let bytes: Int

        package init(stream: Stream, connection: UInt64, number: UInt64, form: Form, bytes: Int) {
            self.stream = stream
            self.connection = connection
            self.number = number
            self.form = form
            self.bytes = bytes
        }
    }

    /// The kind that a listener has to want to be told of it.
    public var kind: Kinds {
        switch self {
        case .connectionOpened, .connectionClosed, .authenticated: .connections
        case .connectionRefused: .refusals
        case .callBegan, .callEnded, .callRefused, .callReached, .callFailed: .calls
        case .versionMade: .versions
        case .delivered, .skipped, .behind: .deliveries
        case .streamBegan, .streamEnded: .streams
        case .actorMade, .actorLetGo: .actors
        case .stored: .store
        case .limitReached: .limits
        case .spanEnded: .spans
        case .reactorHeld, .draining, .ended, .slotTaken, .slotLost, .line: .server
        }
    }
}

/// Somebody who is told what happens at a server: a log, numbers, traces, whoever looks inside.
///
///     final class Refusals: ServerListener {
///         let kinds: ServerEvent.Kinds = [.connections, .limits]
///         func hear(_ event: ServerEvent) { … }
///     }
///     server.addListener(Refusals())
public protocol ServerListener: AnyObject, Sendable {
    /// What it is told of. It is asked once, when it is added: the rest costs nothing.
    var kinds: ServerEvent.Kinds { get }

    /// Something has happened. Called from any thread, often that of a reactor, where all others wait meanwhile: it must not block, and must not
    /// call the server.
    func hear(_ event: ServerEvent)
}
