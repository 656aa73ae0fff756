internal import Networking
package import Transports

/// A request that does not request a WebSocket.
package struct PlainRequest: Sendable {
    package let head: HTTPRequestHead
    /// The address of the client; behind a trusted proxy that of the proxy's client.
    package let remoteAddress: SocketAddress?
    /// Indicates whether a trusted proxy forwarded the request.
    package let isFromProxy: Bool

    package init(head: HTTPRequestHead, remoteAddress: SocketAddress?, isFromProxy: Bool = false) {
        self.head = head
        self.remoteAddress = remoteAddress
        self.isFromProxy = isFromProxy
    }
}

/// The response to a plain request, or the way to compute it.
package enum PlainResponse: Sendable {
    /// The response, after which the connection ends.
    case last(HTTPResponse)
    /// The response, after which the connection may continue.
    case page(StreamedResponse)
    /// Computes the response with blocking disk access, on one of the `BlockingThreads` instead of the reactor.
    case blocking(@Sendable () -> StreamedResponse)
    /// Computes the response in a task, away from the reactor.
    case asynchronous(@Sendable () async -> StreamedResponse)
    /// Creates the handler that admits the request, receives its body and responds. Called on the connection's reactor.
    case handled(@Sendable (ReceivedRequest) -> any RequestHandler)
}
