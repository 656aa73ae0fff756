internal import Bytes
internal import Networking
internal import Transports

/// A client connection from the request to the server's response. Only on its reactor.
final class ClientUpgrade: ByteChannelDelegate {
    private let channel: ByteChannel
    private let handshake: ClientHandshake
    private let limits: WebSocketLimits
    private let makeHandler: @Sendable (WebSocket) -> any WebSocketHandler
    private var scanner: HTTPHeadScanner
    private var buffer = ByteBuffer()
    private var timer: LoopTimer?
    private var continuation: CheckedContinuation<WebSocket, any Error>?
    private var isFinished = false
    /// A response other than 101 whose body is still incomplete, and the length of its head.
    private var refused: (response: HTTPResponseHead, headLength: Int)?

    init(
        _ channel: ByteChannel, _ handshake: ClientHandshake, limits: WebSocketLimits,
        makeHandler: @escaping @Sendable (WebSocket) -> any WebSocketHandler
    ) {
        self.channel = channel
        self.handshake = handshake
        self.limits = limits
        self.makeHandler = makeHandler
        scanner = HTTPHeadScanner(limits: limits)
    }

    /// Sends the request. Only on the reactor.
    func start(_ continuation: CheckedContinuation<WebSocket, any Error>) {
        guard !isFinished else {
            channel.close()
            return continuation.resume(throwing: CancellationError())
        }
        self.continuation = continuation
        do {
            let request = try handshake.request()
            try channel.start(self)
            timer = channel.reactor.schedule(after: limits.handshakeTimeout, for: self) { upgrade in
                upgrade.fail(
                    upgrade.refusal
                        ?? TransportError(.timedOut, "\(upgrade.handshake.url) did not respond to the upgrade in time"))
            }
            channel.write { $0.append(request) }
        } catch {
            fail(error)
        }
    }

    func cancel() { fail(CancellationError()) }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        guard !isFinished else { return }
        buffer.append(UnsafeRawBufferPointer(bytes))
        if refused != nil { return readReason() }
        if handshake.isTLS(buffer.bytes) { return fail(handshake.needsTLS) }
        switch scanner.scan(buffer.bytes) {
        case .incomplete: break
        case .rejection(let rejection): fail(notHTTP(rejection))
        case .complete(let length):
            do {
                let response = try HTTPResponseHead.parse(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<length]))
                guard response.status == 101 else {
                    refused = (response, length)
                    return readReason()
                }
                open(try handshake.validate(response), response.headers, headLength: length)
            } catch let rejection as HTTPRejection {
                fail(notHTTP(rejection))
            } catch {
                fail(error)
            }
        }
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        fail(refusal ?? error ?? handshake.endedEarly)
    }

    /// The error of a rejected upgrade, with the received part of the reason.
    private var refusal: TransportError? {
        refused.map {
            handshake.refusal($0.response, body: UnsafeRawBufferPointer(rebasing: buffer.bytes[$0.headLength...]))
        }
    }

    private func readReason() {
        guard let refused, let refusal else { return }
        let body = UnsafeRawBufferPointer(rebasing: buffer.bytes[refused.headLength...])
        if RejectionReason.isComplete(refused.response.headers, body) { fail(refusal) }
    }

    private func notHTTP(_ rejection: HTTPRejection) -> TransportError {
        TransportError(.handshake, "\(handshake.url) did not send an HTTP/1.1 response: \(rejection.reason)")
    }

    private func open(_ agreement: ClientHandshake.Negotiated, _ headers: HTTPHeaders, headLength: Int) {
        isFinished = true
        timer?.cancel()
        let compression = agreement.compression.flatMap { agreed in
            handshake.compression.map {
                MessageCompression(agreed, role: .client, settings: $0, codecs: CompressionCodecs())
            }
        }
        let socket = WebSocket(
            channel, role: .client, subprotocol: agreement.subprotocol, limits: limits,
            times: ConnectionTimeouts(limits), compression: compression)
        socket.responseHeaders = headers
        let handler = makeHandler(socket)
        socket.handler = handler
        channel.delegate = socket
        continuation?.resume(returning: socket)
        continuation = nil
        socket.startClientBeat()
        handler.webSocketDidOpen(socket)
        // The server's first frames can arrive together with its response.
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer.mutableBytes[headLength...])
        if !rest.isEmpty { socket.channel(channel, didRead: rest) }
    }

    private func fail(_ error: any Error) {
        guard !isFinished else { return }
        isFinished = true
        timer?.cancel()
        channel.close()
        continuation?.resume(throwing: error)
        continuation = nil
    }
}
