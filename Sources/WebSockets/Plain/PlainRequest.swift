internal import Networking
package import Transports

/// A request that asks for no WebSocket: a GET or a HEAD.
package struct PlainRequest: Sendable {
    package let head: HTTPRequestHead
    /// Who asks; behind a trusted proxy its client.
    package let remoteAddress: SocketAddress?
    /// Whether a trusted proxy hands it on.
    package let isFromProxy: Bool

    package init(head: HTTPRequestHead, remoteAddress: SocketAddress?, isFromProxy: Bool = false) {
        self.head = head
        self.remoteAddress = remoteAddress
        self.isFromProxy = isFromProxy
    }
}

/// What a plain request is answered with.
package enum PlainAnswer: Sendable {
    /// The answer, and the end of the connection.
    case last(HTTPResponse)
    /// The connection may go on behind it.
    case page(PageReply)
    /// The answer is found by waiting for a disk: away from the reactor, on one of `BlockingThreads`.
    case lookUp(@Sendable () -> PageReply)
    /// The answer is found in a task, away from the reactor.
    case ask(@Sendable () async -> PageReply)
}
