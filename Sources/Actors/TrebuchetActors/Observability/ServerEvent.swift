public import Transports

/// An event at a server, as event handlers receive it.
///
/// It contains names and identities, but neither arguments and results of calls nor credentials.
public enum ServerEvent: Sendable {
    /// A connection was accepted.
    case connectionOpened(Peer)
    /// A connection has closed, after `duration`.
    case connectionClosed(Peer, duration: Duration, closing: Closing)
    /// A connection or HTTP request was rejected; carries the status and reason that were sent. The address is nil if it is
    /// unknown.
    case connectionRejected(address: SocketAddress?, status: Int, reason: String)
    /// The principal of a connection has changed; its `principal` is nil after a sign-out.
    case authenticated(Peer)
    /// A call has started.
    case callStarted(Call)
    /// A call has ended after `duration`: it was answered, with an error of this code or none, or its client is no longer
    /// connected.
    case callEnded(Call, duration: Duration, error: TrebuchetError.Code?)
    /// A call fails with an error that its method threw, or because its arguments do not match the method.
    case callFailed(Failure)
    /// The method of the call with this number has referred to another actor of the server, or called it.
    case callDispatched(call: UInt64, actor: String)
    /// A call or stream was rejected before execution, with this error code and reason. `target` is the requested method or
    /// stream, `actor` the name; both are as the client has sent them, truncated to 128 bytes.
    case callRejected(Peer, actor: String, target: String, error: TrebuchetError.Code, reason: String)
    /// A state has a new version with a subscriber, or an event was sent.
    case versionCreated(Version)
    /// A version was passed to a connection.
    case updateDelivered(Delivery)
    /// A connection was sent a version without some of those before it: it was at `from` and receives `to`.
    case versionsConflated(Stream, connection: UInt64, from: UInt64, to: UInt64)
    /// A connection does not accept data: it is behind the newest version, and `at` is the last version that it was sent.
    case subscriberFellBehind(Stream, connection: UInt64, at: UInt64)
    /// A stream has started, or has resumed over another connection.
    case streamStarted(Stream, Peer, StreamStart)
    /// A stream has ended for a connection, for this reason (`clientUnsubscribed`, `actorTerminated`, `error`, …).
    case streamEnded(Stream, connection: UInt64, reason: String)
    /// A virtual actor was activated.
    case actorActivated(name: String, type: String)
    /// An idle actor was deactivated, or moves to another node.
    case actorDeactivated(name: String, type: String)
    /// Changes were written to the store; `error` is the reason if the write failed.
    case storeWriteCompleted(actors: Int, duration: Duration, error: String?)
    /// A request was rejected because a limit is reached: `setting` is its name in `ServerLimits`.
    case limitReached(setting: String, Peer?)
    /// A method or other work blocks its reactor: `milliseconds` so far, or in total if `isOver`.
    case reactorStalled(reactor: String, by: String, milliseconds: Int, isOver: Bool)
    /// The server has started to drain: it reports that it is not ready, and disconnects clients later.
    case serverDraining
    /// The server has stopped.
    case serverStopped
    /// This node now owns a slot of the cluster, under a lease with that fence.
    case slotAcquired(Int, fence: UInt64)
    /// This node no longer owns a slot.
    case slotLost(Int)
    /// A log line for operators.
    case logMessage(Level, String)
    /// A line about events of other kinds, for a log without fields: rejected clients, failures of the store, blocked reactors.
    case summary(String)
    /// A span of a sampled trace has ended.
    case spanEnded(TraceSpan)

    /// The kinds of events. Each event handler declares the kinds that it receives; events of other kinds are not created.
    public struct Kinds: OptionSet, Sendable {
        /// A bit for each kind.
        public let rawValue: UInt32
        /// Creates a set of kinds from their bits.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Opened and closed connections, and changes of their principals.
        public static let connections = Kinds(rawValue: 1 << 0)
        /// Started and ended calls.
        public static let calls = Kinds(rawValue: 1 << 1)
        /// Versions of states, with the calls that changed them.
        public static let versions = Kinds(rawValue: 1 << 2)
        /// Deliveries of versions to connections, and versions that a connection does not receive.
        public static let deliveries = Kinds(rawValue: 1 << 3)
        /// Started, resumed and ended streams.
        public static let streams = Kinds(rawValue: 1 << 4)
        /// Activations and deactivations of actors.
        public static let actors = Kinds(rawValue: 1 << 5)
        /// Writes to the store.
        public static let store = Kinds(rawValue: 1 << 6)
        /// Reached limits.
        public static let limits = Kinds(rawValue: 1 << 7)
        /// Events of the server itself: blocked reactors, shutdown, slots, log lines.
        public static let server = Kinds(rawValue: 1 << 8)
        /// Rejected connections and requests.
        public static let rejections = Kinds(rawValue: 1 << 9)
        /// Spans. The server traces only while an event handler receives these.
        public static let spans = Kinds(rawValue: 1 << 10)
        /// Lines about events of other kinds, for a log without fields.
        public static let summaries = Kinds(rawValue: 1 << 12)
        /// The kinds for which calls have numbers. A constant, because it is read with each call.
        package static var callsOrVersions: Kinds { Kinds(rawValue: 1 << 1 | 1 << 2) }
        /// The kinds for which a call is observed.
        package static var callsVersionsOrSpans: Kinds { Kinds(rawValue: 1 << 1 | 1 << 2 | 1 << 10) }
        /// The arguments of calls, in addition to these kinds; only for the inspector.
        package static var arguments: Kinds { Kinds(rawValue: 1 << 11) }
        /// All kinds.
        public static let all = Kinds(rawValue: .max)
    }

    /// The severity of a log line, by the names of swift-log.
    public enum Level: String, Sendable, CaseIterable, Comparable {
        /// Versions and deliveries.
        case trace
        /// Calls, streams and actors.
        case debug
        /// Connections and sign-ins.
        case info
        /// Rejections, and events of the server.
        case notice
        /// Reached limits and blocked reactors.
        case warning
        /// Failures that an operator should investigate.
        case error
        /// Errors that stop the server.
        case critical

        public static func < (one: Level, other: Level) -> Bool { one.rank < other.rank }

        private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    /// A connection and its principal.
    public struct Peer: Sendable, Equatable {
        /// The number of the connection, unique for the lifetime of the server.
        public let connection: UInt64
        /// The address of the other end; nil for a client in this process, and if it is unknown.
        public let address: SocketAddress?
        /// The id of the principal; nil without one.
        public let principal: String?

        package init(connection: UInt64, address: SocketAddress?, principal: String?) {
            self.connection = connection
            self.address = address
            self.principal = principal
        }
    }

    /// A call of a client.
    public struct Call: Sendable, Equatable {
        /// The number of the call, unique among the observed calls of this server. Versions refer to it.
        public let number: UInt64
        /// The connection of the caller.
        public let peer: Peer
        /// The name of the actor.
        public let actor: String
        /// The type of the actor, such as `Demo.TodoList`.
        public let type: String
        /// The method, such as `addTodo(title:)`.
        public let method: String
        /// The trace of the call; nil for none.
        public let trace: TraceContext?
        /// The arguments; nil if no event handler receives them.
        package let arguments: Arguments?

        /// The arguments of a call, as far as they may be shown.
        package enum Arguments: Sendable, Equatable {
            /// A JSON array.
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

    /// A stream of an actor.
    public struct Stream: Sendable, Equatable {
        /// The name of the actor.
        public let actor: String
        /// The type of the actor.
        public let type: String
        /// The stream, such as `observeState`.
        public let target: String

        package init(actor: String, type: String, target: String) {
            self.actor = actor
            self.type = type
            self.target = target
        }
    }

    /// The way in which a stream starts.
    public enum StreamStart: String, Sendable {
        /// The stream starts for the first time.
        case initial
        /// A client resumes after the version that it has.
        case resumed
        /// A reconnected client receives the whole value, because its version cannot be continued.
        case resynchronized
        /// A reconnected client is notified that it has missed events.
        case eventsMissed
    }

    /// A version of a state, or an event.
    public struct Version: Sendable, Equatable {
        /// The stream of the version.
        public let stream: Stream
        /// The number of the version. It increases and may skip numbers: each change has a number, and changes that are sent
        /// together form one version with the last number.
        public let number: UInt64
        /// The numbers of the calls whose changes the version contains, each once, in their order; several if changes were
        /// merged. Empty if no observed client call changed the state. At most 1,000; `unnamedCallCount` counts the others.
        public let calls: [UInt64]
        /// The number of further calls with changes in the version; beyond 10,000 a call may be counted twice.
        public let unnamedCallCount: Int
        /// A Boolean value that indicates whether the version contains changes with other causes than observed calls. Examples
        /// are server code and a task that outlives its call.
        public let hasOtherCauses: Bool
        /// The size of the update in bytes.
        public let bytes: Int
        /// A Boolean value that indicates whether the update is a delta.
        public let isPatch: Bool
        /// The bytes that were encoded only for readers in this process; 0 if the stream has a network subscriber.
        package let bytesForReaders: Int

        package init(
            stream: Stream, number: UInt64, calls: [UInt64], unnamedCallCount: Int, hasOtherCauses: Bool = false,
            bytes: Int,
            isPatch: Bool, bytesForReaders: Int = 0
        ) {
            self.bytesForReaders = bytesForReaders
            self.stream = stream
            self.number = number
            self.calls = calls
            self.unnamedCallCount = unnamedCallCount
            self.hasOtherCauses = hasOtherCauses
            self.bytes = bytes
            self.isPatch = isPatch
        }
    }

    /// The delivery of a version to a connection.
    public struct Delivery: Sendable, Equatable {
        /// The form of an update.
        public enum Form: String, Sendable {
            /// A delta to the version before.
            case patch
            /// The whole value.
            case snapshot = "whole"
            /// An event.
            case event
        }

        /// The stream.
        public let stream: Stream
        /// The number of the connection; 0 for a reader in this process.
        public let connection: UInt64
        /// The number of the version.
        public let number: UInt64
        /// The form of the update.
        public let form: Form
        /// The size of the update in bytes.
        public let bytes: Int

        package init(stream: Stream, connection: UInt64, number: UInt64, form: Form, bytes: Int) {
            self.stream = stream
            self.connection = connection
            self.number = number
            self.form = form
            self.bytes = bytes
        }
    }

    /// The kind that an event handler must declare to receive this event.
    public var kind: Kinds {
        switch self {
        case .connectionOpened, .connectionClosed, .authenticated: .connections
        case .connectionRejected: .rejections
        case .callStarted, .callEnded, .callRejected, .callDispatched, .callFailed: .calls
        case .versionCreated: .versions
        case .updateDelivered, .versionsConflated, .subscriberFellBehind: .deliveries
        case .streamStarted, .streamEnded: .streams
        case .actorActivated, .actorDeactivated: .actors
        case .storeWriteCompleted: .store
        case .limitReached: .limits
        case .spanEnded: .spans
        case .summary: .summaries
        case .reactorStalled, .serverDraining, .serverStopped, .slotAcquired, .slotLost, .logMessage: .server
        }
    }
}

/// A receiver of server events: a log, metrics, traces, the inspector.
///
///     final class Refusals: ServerEventHandler {
///         let kinds: ServerEvent.Kinds = [.connections, .limits]
///         func handle(_ event: ServerEvent) { … }
///     }
///     server.addEventHandler(Refusals())
public protocol ServerEventHandler: AnyObject, Sendable {
    /// The kinds of events that it receives. Read once, when it is added; events of other kinds cost nothing.
    var kinds: ServerEvent.Kinds { get }

    /// Receives an event. Called on any thread, often on that of a reactor, which is blocked meanwhile: it must not block, and
    /// must not call the server.
    func handle(_ event: ServerEvent)
}
