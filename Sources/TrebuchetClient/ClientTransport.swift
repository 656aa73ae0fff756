public import Transports
internal import TrebuchetWire

/// A way for a client to its server. `Trebuchet` has WebSockets on the sockets of Linux, `TrebuchetURLSession` those of Foundation;
/// one of your own can be anything that carries messages in order.
public protocol ClientTransport: Sendable {
    /// The server, as it stands in errors: `wss://example.com`.
    var address: String { get }
    /// Whether two clients with the same address have the same server: then a reference that one of them has may be passed to an
    /// actor of the other. Default true; false where the address is no more than a description. Servers that tell `ClientLink.session`
    /// are known by that too.
    var addressIdentifiesServer: Bool { get }

    /// Opens a connection, and returns when `receiver` was told that it is open.
    ///
    /// It is called for each attempt, perhaps while an earlier connection is still there. It is cancelled when the client does not
    /// want the connection any more.
    ///
    /// - Throws: a `TransportError` when there is none to be had: `timedOut` after `request.timeout`. The client tries again as its
    ///   `ReconnectPolicy` says. It gives up at once when the error is a `handshake` whose cause is an `UnspokenProtocol`, or an
    ///   `UnexpectedStatus` of 403, or of 401 without a token to ask anew; and, as long as there has been no connection since
    ///   `connect()`, at any other `handshake` without an `UnexpectedStatus`, and at `tls`.
    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws
}

extension ClientTransport {
    /// True.
    public var addressIdentifiesServer: Bool { true }
}

/// What a client wants of a connection.
public struct ConnectionRequest: Sendable {
    /// The WebSocket subprotocol that both sides are to speak (RFC 6455 §1.9): `trebuchet.v3`.
    public let subprotocol: String
    /// What the request that opens it has to carry, the client's token among it.
    public let headers: HTTPHeaders
    /// How long opening may take.
    public let timeout: Duration
    /// The largest message that the client takes, in bytes; a larger one ends the connection.
    public let messageSize: Int
    /// How long nothing comes before the server is to be asked for a sign of life; nil for never.
    public let pingInterval: Duration?
    /// How long it may then still be silent before the connection ends.
    public let pongTimeout: Duration

    init(_ options: TrebuchetClient.Options) async throws {
        subprotocol = ProtocolVersion.subprotocol
        var headers = try await options.requestHeaders
        headers.remove(HandshakeField.messageSize)
        headers.add(HandshakeField.messageSize, String(options.messageSize))
        self.headers = headers
        timeout = options.connectTimeout
        messageSize = options.messageSize
        pingInterval = options.pingInterval
        pongTimeout = options.pongTimeout
    }
}

/// An open connection, as its client uses it. On the client's loop.
public protocol ClientLink: AnyObject, Sendable {
    /// The field `Trebuchet-Session` of the server's answer: the connection's name at its server. Nil when it has none: then calls of
    /// `@Idempotent` methods are not repeated.
    var session: String? { get }
    /// Sends a message, whole and in its order; one that cannot be sent ends the connection.
    func send(_ message: [UInt8])
    /// Ends the connection, when what was sent has left. The receiver is told `closed` all the same.
    func close()
}

/// Where a transport tells what becomes of one connection: first `opened`, then each message, in the end `closed`, once. From any
/// thread, one after the other, and in that order it is heard: from the client's own loop at once, unless something before it is still
/// to be heard or the client is just telling the link something; then soon after.
public final class ConnectionReceiver: Sendable {
    private let core: ClientCore
    /// Of the attempt.
    private let number: Int
    private let order: ReportOrder

    package var loop: any EventLoop { core.loop }

    init(_ core: ClientCore, number: Int) {
        self.core = core
        self.number = number
        order = ReportOrder(on: core.loop)
    }

    /// The connection is there.
    public func opened(_ link: any ClientLink) {
        let link = OrderedLink(link, order)
        report { self.core.connection.opened(link, number: self.number) }
    }

    /// A message has come. The bytes are read, or copied, before this returns.
    public func received(_ message: UnsafeRawBufferPointer) {
        if order.isHeardAtOnce { return core.receive(message, over: number) }
        let copy = Array(message)
        order.later { copy.withUnsafeBytes { self.core.receive($0, over: self.number) } }
    }

    /// The connection is gone. When the server has closed it because a message was too large for it (1009 of RFC 6455 §7.4.1), the
    /// cause is a `MessageRefusal`: then that message is not sent again.
    public func closed(_ error: TransportError) {
        report { self.core.connection.lost(number: self.number, error) }
    }

    private func report(_ work: @escaping @Sendable () -> Void) {
        if order.isHeardAtOnce { work() } else { order.later(work) }
    }
}

/// The server has closed a connection because of a message that was too large for it: the cause of a `TransportError`.
public struct MessageRefusal: Error, Sendable {
    /// The cause for a transport's `closed` where the server refused a message for its size.
    public init() {}
}

/// A transport that brings the loop on which its clients live, so that what it tells needs no other thread.
package protocol LoopTransport: ClientTransport {
    var loop: any EventLoop { get }
}

extension ClientTransport {
    var clientLoop: any EventLoop { (self as? any LoopTransport)?.loop ?? DispatchLoop.shared }
}
