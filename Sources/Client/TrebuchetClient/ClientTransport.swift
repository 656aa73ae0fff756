public import Transports
internal import TrebuchetWire

/// A message transport from a client to its server. `Trebuchet` has WebSockets for Linux, `TrebuchetURLSession` those of
/// Foundation; a custom transport can be anything that delivers messages in order.
public protocol ClientTransport: Sendable {
    /// The server's address for error messages: `wss://example.com`.
    var address: String { get }
    /// Whether two clients with the same address have the same server: then a reference of one client may be passed to an actor
    /// of the other. Default true; false if the address is only a description. Servers that set `ClientLink.callSession` are
    /// identified by that too.
    var addressIdentifiesServer: Bool { get }

    /// Opens a connection, and returns after it has called `opened` on `receiver`.
    ///
    /// It is called for each attempt, possibly while an earlier connection still exists. Its task is cancelled when the client no
    /// longer wants the connection.
    ///
    /// - Throws: a `TransportError` on failure: `timedOut` after `request.timeout`. The client retries according to its
    ///   `ReconnectPolicy`. It gives up immediately after a `handshake` error whose cause is an `SubprotocolNotSupported`, or an
    ///   `UnexpectedHTTPStatus` of 403, or of 401 without a token provider. Before the first connection since `connect()` it also
    ///   gives up after any other `handshake` error without an `UnexpectedHTTPStatus`, and after a `tls` error.
    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws
}

extension ClientTransport {
    /// True.
    public var addressIdentifiesServer: Bool { true }
}

/// The parameters of a connection that a client requests.
public struct ConnectionRequest: Sendable {
    /// The WebSocket subprotocol to negotiate (RFC 6455 §1.9): `trebuchet.v3`.
    public let subprotocol: String
    /// The header fields of the opening request, including the client's token.
    public let headers: HTTPHeaders
    /// The time limit for opening.
    public let timeout: Duration
    /// The maximum message size that the client accepts, in bytes; a larger message ends the connection.
    public let messageSize: Int
    /// The time without input after which the transport must check that the server is alive; nil for never.
    public let pingInterval: Duration?
    /// The time after that check in which the server must respond before the connection ends.
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

/// An open connection, as used by its client on the client's event loop.
public protocol ClientLink: AnyObject, Sendable {
    /// The field `Trebuchet-Session` of the server's response: the server's name for the connection. If it is nil, calls of
    /// `@Idempotent` methods are not repeated.
    var callSession: String? { get }
    /// Sends a whole message, in order. If it cannot be sent, the connection ends.
    func send(_ message: [UInt8])
    /// Closes the connection after sending all messages. The receiver still gets `linkDidClose`.
    func close()
}

/// The receiver to which a transport reports the events of one connection: first `opened`, then each message, finally `linkDidClose`,
/// once.
///
/// The methods may be called from any thread, but not concurrently. The client handles the reports in order. A report on the
/// client's event loop is handled immediately, unless an earlier one is pending or the client is calling the link; then it is
/// handled soon after.
public final class ConnectionReceiver: Sendable {
    private let core: ClientCore
    /// The number of the attempt.
    private let number: Int
    private let order: ReentrancyGuardedInbox

    package var loop: any EventLoop { core.loop }

    init(_ core: ClientCore, number: Int) {
        self.core = core
        self.number = number
        order = ReentrancyGuardedInbox(on: core.loop)
    }

    /// Reports that the connection is open.
    public func linkDidOpen(_ link: any ClientLink) {
        let link = ReentrancyGuardedLink(link, order)
        report { self.core.connection.opened(link, number: self.number) }
    }

    /// Reports a message. The bytes are read or copied before this returns.
    public func didReceive(_ message: UnsafeRawBufferPointer) {
        if order.handlesImmediately { return core.receive(message, over: number) }
        let copy = Array(message)
        order.enqueue { copy.withUnsafeBytes { self.core.receive($0, over: self.number) } }
    }

    /// Reports the end of the connection. If the server closed it because a message was too large (1009 of RFC 6455 §7.4.1), the
    /// cause is a `MessageTooLarge`; then that message is not sent again.
    public func linkDidClose(_ error: TransportError) {
        report { self.core.connection.lost(number: self.number, error) }
    }

    private func report(_ work: @escaping @Sendable () -> Void) {
        if order.handlesImmediately { work() } else { order.enqueue(work) }
    }
}

/// The server closed a connection because a message was too large: the cause of a `TransportError`.
public struct MessageTooLarge: Error, Sendable {
    /// Creates the cause for the `linkDidClose` of a transport whose server rejected a message for its size.
    public init() {}
}

/// A transport that provides the event loop of its clients, so that its reports need no other thread.
package protocol LoopTransport: ClientTransport {
    var loop: any EventLoop { get }
}

extension ClientTransport {
    var clientLoop: any EventLoop { (self as? any LoopTransport)?.loop ?? DispatchLoop.shared }
}
