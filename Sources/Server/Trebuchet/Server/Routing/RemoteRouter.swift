package import TrebuchetActors
package import Transports

/// Routes calls and streams to actors that live on other servers. A server without a router has all of its actors itself.
///
/// A router has one `ShardRouter` for each reactor, and one `ConnectionForwarder` for each connection that uses remote actors. The
/// server tests optional references to them, and does not use them in calls to its local actors.
package protocol RemoteRouter: AnyObject, Sendable {
    // MARK: Owners

    /// The store of the actors that live on one server of several.
    var store: any PerActorStore { get }
    /// The rows of those of them that have alarms, as far as they live here; nil where they cannot have alarms.
    var alarmRows: (any AlarmRowSource)? { get }
    /// Returns whether an actor of this name may live here now. Callable from any thread.
    func owns(_ actor: String) -> Bool
    /// Returns the partition of a name. The actors of a partition live on the same server.
    func partition(of actor: String) -> Int
    /// Deactivates actors that another server may own. Their streams are resumed there.
    func release(_ records: [ActorRecord], of server: TrebuchetServer) async

    // MARK: Life cycle

    /// Creates the parts for the reactors of the server. Called once, before the server listens.
    func makeShardRouters(for shards: [ServerShard]) -> [any ShardRouter]
    /// Starts to route. May be called again after an error.
    ///
    /// - Parameter mayContinue: True if the server continues to run after a loss of shared data.
    func start(_ server: TrebuchetServer, mayContinue: Bool) async throws
    /// Returns when an operator requests the end of the server, or the task is cancelled.
    func waitForStopRequest() async
    /// Returns when the router has failed permanently, or the task is cancelled.
    func waitForFailure() async
    /// The reason of the permanent failure; nil otherwise.
    var failure: (any Error)? { get }
    /// Passes the server's actors to other servers, and continues to forward calls. Takes at most `limit`.
    func drain(within limit: Duration) async
    /// Returns when other servers have the responses of this one, or after a time limit.
    func flush() async
    /// Accepts no further messages of other servers, and returns when they know which ones were accepted.
    func endExchange() async
    /// Stops the exchange of messages with other servers, as if the process had crashed.
    func stopExchange()
    /// Stops all work and releases the parts of the server.
    func stop()

    // MARK: Operation

    /// Returns the reason why it cannot route now; nil when it can.
    func problem() async -> String?
    /// The metrics of the router, in their order.
    var metrics: [RouterMetric] { get }
    /// Indicates whether it has a certificate from a file.
    var hasCertificateFiles: Bool { get }
    /// The time until its certificate from a file expires; nil without one.
    var certificateRemainingTime: Duration? { get }
    /// Reads its certificate files again, for new connections.
    func reloadCertificates() throws(TransportError)
}

/// A metric of a router, as exported to Prometheus.
package struct RouterMetric: Sendable {
    package let name: String
    package let isCounter: Bool
    package let help: String
    package let value: UInt64

    package init(_ name: String, isCounter: Bool = false, _ help: String, _ value: UInt64) {
        (self.name, self.isCounter, self.help, self.value) = (name, isCounter, help, value)
    }
}

/// The part of a router on one reactor. Isolated to that reactor.
package protocol ShardRouter: AnyObject {
    /// Returns whether the actor may serve calls here now.
    func mayServe(_ record: ActorRecord) -> Bool
    /// Creates the forwarder of a connection that uses its first remote actor.
    func makeForwarder(for connection: ServerConnection) -> any ConnectionForwarder
    /// Sends other servers the changes of this reactor's actors, before the responses of the calls that made them.
    func catchUpFeeds()
    /// Indicates whether another server waits for the current versions of streams.
    var isAwaited: Bool { get }
    /// Ends the streams that other servers receive of actors that have left this server.
    func moveStreams(of actors: Set<ActorName>)
    /// Releases all feeds after shutdown.
    func releaseReferences()
}

/// The calls and streams of one client with actors of other servers. Isolated to the connection's reactor. It is released when the
/// connection closes.
package protocol ConnectionForwarder: AnyObject {
    /// The reason why no message of the client can be forwarded; nil normally.
    var excess: TrebuchetError? { get }
    /// Returns whether the message waits until the reactor knows of the latest owners. It must not precede information for its
    /// streams, nor an earlier call.
    func postpones(_ message: borrowing Message) -> Bool
    /// Returns whether messages to the actor queue behind earlier ones that are at another server or return from there.
    func hasEarlierMessages(behind message: borrowing Message) -> Bool
    /// Forwards a call. The caller has authorized it.
    ///
    /// - Parameter isRepeatable: True if the owner recognizes a repeat of it.
    func forward(_ message: borrowing Message, isRepeatable: Bool)
    /// Forwards a message that starts or resumes a stream.
    func forward(
        _ message: borrowing Message, starting requested: RequestedStream, _ filter: StreamFilter?,
        _ reservation: StreamReservation)
    /// Resumes a stream of the client at the current owner of its actor.
    ///
    /// - Parameters:
    ///   - position: The last version that the client has received.
    ///   - pauses: True to pause first, for example because the owner could not load the actor.
    func resume(_ stream: MovingStream, at position: StreamRequest.ResumePosition, pauses: Bool)
    /// Returns whether a stream of the actor is being resumed: the changes of a call at its owner have then not reached the client.
    func awaits(_ actor: ActorName) -> Bool
    /// Ends the client's stream if it is a forwarded one. Returns whether it was.
    func unsubscribe(_ streamID: [UInt8]) -> Bool
    /// Ends the streams that `refused` returns an error for.
    func endStreams(refused: (_ target: String, _ actor: String) -> TrebuchetError?)
    /// Ends all forwarded streams without a message to the client, and returns their names.
    func endStreamsForReconnect() -> [[UInt8]]
    /// Handles a change of the client's principal, a revocation of its authorization, or the end of one.
    func callerDidChange()
    func linkDidBecomeWritable()
    /// Ends all calls and streams: the client has disconnected.
    func close()
}

/// A call that is forwarded to another server.
package protocol ForwardedRequest: AnyObject {
    /// Indicates whether its owner recognizes a repeat of it.
    var isRepeatable: Bool { get }
    /// Indicates whether it may have begun at an owner.
    var mayHaveBegun: Bool { get }
    /// Cancels it at its owner.
    func cancel()
    /// Calls `body` when its message has left the memory of this server. Returns false if it is not there any more.
    func whenSent(_ body: @escaping @Sendable () -> Void) -> Bool
}

/// The server that a client is connected to, which forwards its connection to this server. Isolated to the connection's reactor.
/// Its messages follow earlier ones to the client.
package protocol UpstreamServer: AnyObject {
    /// The connection's names at that server and at this one: calls refer to them.
    var alias: RemoteSessionAlias { get }
    /// The prefix of the names of the connection's streams.
    var streamPrefix: String { get }
    /// The name of a stream that the client only gets the permission for, since its server receives the stream itself.
    var permission: [UInt8] { get }
    /// Reports that the call or stream of this callID was not started: its actor belongs to another server.
    func refuse(_ callID: [UInt8])
    /// Requests that the call is repeated at the next owner, which knows whether it was executed.
    func repeatElsewhere(_ callID: [UInt8])
    /// Reports that the stream of this name belongs to another server from now on.
    func move(_ streamID: [UInt8])
    /// Reports that the client has every version of the resumed stream of this name.
    func reportCatchUp(of streamID: [UInt8])
    /// Returns whether that server itself resumes a stream that its client started earlier.
    func resumesItself(_ callID: UnsafeRawBufferPointer) -> Bool
    /// Returns whether that server can receive the requested stream once for all of its clients.
    func mayShare(_ callID: UnsafeRawBufferPointer) -> Bool
    /// Returns the client's number of a call whose response is recorded; nil if there is none.
    func callNumber(_ callID: UnsafeRawBufferPointer) -> UInt64?
}

/// A stream of an actor that may move to another server: the data with which the stream is resumed there.
package struct MovableStream: Sendable {
    package let callID: [UInt8]
    package let actor: String
    package let target: String
    package let filter: StreamFilter?
    /// The partition of the actor, stored because it is checked for each partition that moves.
    package let partition: Int
}

/// A movable stream that continues at another server.
package struct MovingStream {
    package let stream: MovableStream
    /// The client's name of the stream.
    package let streamID: [UInt8]
    /// Indicates whether this server may share the stream among its clients.
    package let mayShare: Bool
    package let reservation: StreamReservation
}

/// The answer to the request for a shared stream, which a server receives once for all of its clients.
package enum SharedStreamOutcome: Sendable {
    case stream(RemoteStreamReplica)
    /// The stream is available elsewhere or in a new incarnation: request it again.
    case elsewhere
    case failed(TrebuchetError)
}

/// The error of a request that waited here when its actor moved to another server: nothing was started.
enum ActorMoved {
    /// Returns true for an error of an activation that was given up before the change of a call was acknowledged.
    static func mayHaveBegun(_ error: any Error) -> Bool { (error as? TrebuchetError)?.isOfLostActivation == true }

    static var error: TrebuchetError { .moved("the actor has just moved to another server; retry") }

    static func isIt(_ error: any Error) -> Bool { (error as? TrebuchetError)?.isOfMovedActor == true }
}

/// The outcome of a call that arrives as if for the first time although an earlier owner has started it: its response is in the
/// log. A separate type, so that no error of a method or a peer can be mistaken for it.
struct PriorExecution: Error {}
