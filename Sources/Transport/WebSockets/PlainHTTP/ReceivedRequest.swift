package import Bytes
package import Networking
package import Transports

/// The handler of one request. Its functions are called on the connection's reactor. `readBody` may call `didReceive` or `didReject` before
/// it returns, so a handler calls it last.
package protocol RequestHandler: AnyObject {
    /// Decides about the request by its head: calls `ReceivedRequest.readBody` or `respond`, at once or later.
    func begin()
    /// Receives the whole body, empty for a request without one, after `readBody`.
    func didReceive(_ body: [UInt8])
    /// Responds to a request that was rejected because of its body or its duration.
    func didReject(_ rejection: HTTPRejection)
    /// Called when more of a streamed body may be written, after it was not.
    func didBecomeWritable()
    /// Called instead of any other function when the client has disconnected before the end of the response.
    func didDisconnect()
}

extension RequestHandler {
    package func didBecomeWritable() {}
}

/// One request with its connection, until the end of its response. Isolated to the connection's reactor.
///
/// The body is read after the handler has asked for it. Until then it waits in the kernel, except for the bytes that arrived together
/// with the head.
package final class ReceivedRequest {
    package let request: PlainRequest
    /// The host of the client; nil for loopback.
    package let host: AddressKey?
    package let reactor: Reactor
    /// The connection; nil after the end of the response, and after the client has disconnected.
    private var exchange: PlainHTTPExchange?
    private(set) var handler: (any RequestHandler)?

    init(_ request: PlainRequest, host: AddressKey?, over exchange: PlainHTTPExchange, on reactor: Reactor) {
        (self.request, self.host, self.exchange, self.reactor) = (request, host, exchange, reactor)
    }

    func begin(_ make: (ReceivedRequest) -> any RequestHandler) {
        let handler = make(self)
        self.handler = handler
        handler.begin()
    }

    /// A Boolean value that indicates whether the client waits for a response.
    package var isOpen: Bool { exchange?.isOpen == true }

    /// The memory account of the connection.
    package var memory: MemoryAccount? { exchange?.account }

    /// Fields of the response, in place of those of the same names that it has.
    package var fields = HTTPHeaders()

    /// Counts the memory of the connection for the principal of the request too, until the response is complete.
    ///
    /// - Parameter owner: Keeps the budget the one of all connections of the principal while it exists.
    /// - Returns: The refusal of the request if the part of it that has arrived exceeds the limit.
    package func join(_ principal: MemoryBudget, of owner: any AnyObject & Sendable) -> HTTPRejection? {
        exchange?.join(principal, of: owner)
    }

    /// Counts the body no longer, after the handler has made something else of it that counts.
    package func releaseBody() { exchange?.releaseBody() }

    /// The body that the handler received, which counts as buffered memory while the object exists. The connection holds it until the
    /// response. Nil for a small body.
    package var heldBody: CountedBytes? { exchange?.heldBody }

    /// Makes the response the last one of the connection.
    package func endConnectionAfterResponse() { exchange?.answerNoMore() }

    /// An object that the handlers of the connection's successive requests share.
    package var attachment: AnyObject? {
        get { exchange?.attachment }
        set { exchange?.attachment = newValue }
    }

    /// Reads the body. The handler receives it by `didReceive`, also if there is none, or gets a rejection. A client that waits for
    /// permission (`Expect: 100-continue`) gets it.
    package func readBody(_ limits: HTTPBodyLimits) { exchange?.readBody(limits) }

    /// Responds to the request, once. The connection ends after the response if the body was not read to its end.
    ///
    /// - Parameter isRefusal: True if the response counts as the rejection of a client in the log and in the metrics.
    package func respond(_ reply: StreamedResponse, isRefusal: Bool = false) {
        guard let exchange else { return }
        release()
        var reply = reply
        reply.response.headers.replace(with: fields)
        exchange.respond(reply, isRefusal: isRefusal)
    }

    /// Starts a response whose body follows in pieces, instead of `respond`. The whole body of the request has been received.
    ///
    /// A client that accepts too little of pending output is disconnected, as for pages; so is one that falls behind as far as a
    /// WebSocket may not (`WebSocketLimits.sharedBytesUnsent`).
    package func beginStreaming(_ response: HTTPResponse) {
        var response = response
        response.headers.replace(with: fields)
        exchange?.beginStreaming(response)
    }

    /// Indicates whether fewer bytes than the high watermark wait to be sent.
    package var isWritable: Bool { exchange?.isWritable ?? false }
    /// The number of bytes that wait to be sent.
    package var pendingBytes: Int { exchange?.pendingBytes ?? 0 }
    /// The number of bytes of the connection that the client's system has acknowledged; nil if the kernel does not report it.
    package var acknowledgedBytes: UInt64? { exchange?.acknowledgedBytes }

    /// Writes a piece of a streamed body.
    ///
    /// - Parameters:
    ///   - count: The number of all bytes of the piece.
    ///   - shared: Bytes at its end that other connections share.
    ///   - head: Appends the bytes before these.
    package func write(_ count: Int, shared: SharedBytes? = nil, _ head: (inout ByteBuffer) -> Void) {
        exchange?.writePiece(count, shared: shared, head)
    }

    /// Sends all pieces that `body` writes in one system call.
    package func inOneWrite(_ body: () -> Void) { if let exchange { exchange.inOneWrite(body) } else { body() } }

    /// Ends a streamed body.
    package func endStreaming() {
        guard let exchange else { return }
        release()
        exchange.endStreaming()
    }

    /// Resets the connection without a response, or before its end.
    package func abort() {
        guard let exchange else { return }
        release()
        exchange.abort()
    }

    /// Notifies the handler that the client has disconnected.
    func disconnect() {
        guard let handler else { return }
        release()
        handler.didDisconnect()
    }

    private func release() { (exchange, handler) = (nil, nil) }
}
