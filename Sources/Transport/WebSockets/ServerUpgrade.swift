internal import Bytes
internal import Networking
internal import Transports

/// A server connection from its first byte to the handshake response, or as long as it requests pages. The object, with the head
/// and all memory for it, is freed when the WebSocket starts.
final class ServerUpgrade: ByteChannelDelegate {
    /// The maximum input that is read after the response. A client that is still sending can read the response, and a client that
    /// never stops costs no more.
    private static let maximumDiscarded = 64 << 10

    private let channel: ByteChannel
    private let configuration: ServerConfiguration
    private let table: ConnectionTable
    private var scanner: HTTPHeadScanner
    // Placed here to use padding: every WebSocket connection has one of these objects for a while.
    private var isAnswered = false
    private var isTimedOut = false
    /// True after the eviction of the connection.
    private(set) var isEvicted = false
    /// True once the last response is queued; the connection ends after it.
    private var isEnding = false
    /// The number of the connection on its reactor, in the order of arrival.
    let number: UInt64
    /// True if the peer is a trusted proxy.
    private let isProxy: Bool
    private var buffer = ByteBuffer()
    private var timer: LoopTimer?
    private var addressEntry: CountedConnection?
    /// The HTTP exchange, created for the first page request.
    private var conversation: PlainHTTPExchange?

    init(
        _ channel: ByteChannel, _ configuration: ServerConfiguration, _ table: ConnectionTable,
        _ entry: CountedConnection?,
        isProxy: Bool
    ) {
        addressEntry = entry
        number = table.nextNumber()
        self.isProxy = isProxy
        self.channel = channel
        self.configuration = configuration
        self.table = table
        scanner = HTTPHeadScanner(limits: configuration.limits)
    }

    func start() {
        table.insert(self)
        do {
            try channel.start(self)
        } catch {
            table.remove(self)
            return
        }
        limitHead()
    }

    private func limitHead() {
        timer?.cancel()
        timer = channel.reactor.schedule(after: configuration.limits.handshakeTimeout, for: self) { upgrade in
            upgrade.isTimedOut = true
            // A response requires a complete TLS handshake.
            guard upgrade.channel.isEstablished else { return upgrade.cancel() }
            upgrade.answer(HTTPResponse(status: 408, text: "the handshake took too long"))
        }
    }

    func cancel() { channel.close() }

    /// True if no request of the connection is being processed.
    var isSilent: Bool { !isEvicted && !isAnswered && conversation?.isAnswering != true }

    func evict() {
        isEvicted = true
        cancel()
    }

    /// Ends the connection after the response in progress.
    func endAfterResponse() {
        if let conversation, conversation.isAnswering {
            conversation.answerNoMore()
        } else if !isEnding {
            cancel()
        }
    }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        guard !isAnswered else { return }
        if let conversation {
            guard conversation.isIdle else { return conversation.receiveInput(bytes) }
            // A new request has the same time limit as the first.
            if buffer.isEmpty { limitHead() }
        }
        // Nearly every head arrives in one piece and is parsed in place.
        if buffer.isEmpty { return read(bytes) }
        // The bytes are not in `buffer` while they are parsed, because the called code may change `buffer`.
        var whole = ByteBuffer()
        swap(&whole, &buffer)
        whole.append(UnsafeRawBufferPointer(bytes))
        // `whole` is used afterwards on both paths, so that its memory stays alive until then.
        if readHead(whole.mutableBytes) { whole.removeAll() } else { swap(&whole, &buffer) }
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) { conversation?.didBecomeWritable() }

    var representedAddress: SocketAddress? { addressEntry?.client }

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        timer?.cancel()
        conversation?.end()
        table.remove(self)
        if let error, error.code == .tls, !isAnswered { configuration.failedTLS?(error) }
    }

    /// Parses all bytes so far, which are not in `buffer`, and buffers an incomplete head.
    private func read(_ bytes: UnsafeMutableRawBufferPointer) {
        if !readHead(bytes) { buffer.append(UnsafeRawBufferPointer(bytes)) }
    }

    /// Parses a head and processes the request, or rejects it. Returns false for an incomplete head. The bytes must not be in
    /// `buffer`.
    private func readHead(_ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        switch scanner.scan(UnsafeRawBufferPointer(bytes)) {
        case .incomplete: return false
        case .rejection(let rejection): answer(rejection.response)
        case .complete(let length):
            do throws(HTTPRejection) {
                let request = try HTTPRequestHead.parse(
                    UnsafeRawBufferPointer(rebasing: bytes[..<length]), allowsBody: configuration.handled != nil)
                try handle(request, rest: UnsafeMutableRawBufferPointer(rebasing: bytes[length...]))
            } catch {
                answer(error.response)
            }
        }
        return true
    }

    private func handle(_ request: HTTPRequestHead, rest: UnsafeMutableRawBufferPointer) throws(HTTPRejection) {
        if isProxy { try findClient(request) }
        // Runs first, so that a page of a rejected origin causes no work.
        if let check = configuration.check, let refusal = check(request, channel.localAddress) {
            return answer(refusal, to: request)
        }
        guard request.wantsWebSocket else { return try handlePlain(request, rest) }
        let agreement = try ServerHandshake.negotiate(
            request, subprotocols: configuration.subprotocols, compression: configuration.compression)
        guard !table.isDraining else { throw HTTPRejection(503, "the server is shutting down") }
        guard table.count <= configuration.connectionsPerReactor else {
            throw HTTPRejection(503, "the server's connection limit is reached")
        }
        let remoteAddress = channel.remoteAddress
        if let excess = configuration.memory.refusal(of: remoteAddress) { throw HTTPRejection(503, excess.reason) }
        let upgrade = WebSocketUpgrade(
            request: request, subprotocol: agreement.subprotocol, remoteAddress: remoteAddress,
            isSecure: channel.isSecure, clientCertificateSubject: channel.peerSubject,
            clientCertificateName: channel.peerName, reactor: channel.reactor)
        guard let admit = configuration.admit else { return decide(upgrade, agreement, rest) }
        // Input before the response waits in the kernel, or is buffered up to the size of a read buffer.
        channel.pauseReading()
        buffer.reset(keepingAtMost: 0)
        buffer.append(UnsafeRawBufferPointer(rest))
        isAnswered = true
        let pending = LoopBound(self, on: channel.reactor)
        Task(executorPreference: channel.reactor.tasks) {
            let admission = await admit(upgrade)
            let reactor = upgrade.reactor
            reactor.run { pending.value.admitted(admission, upgrade, agreement) }
        }
    }

    /// Assigns the connection to the proxy's client, as if it had connected directly.
    private func findClient(_ request: HTTPRequestHead) throws(HTTPRejection) {
        let decision: AddressCounter.Decision
        if let client = try configuration.proxies.client(in: request.headers) {
            decision = configuration.addresses.enter(client)
        } else {
            decision = configuration.addresses.enter(channel.remoteAddress)
        }
        switch decision {
        case .admitted(let entry): addressEntry = entry
        case .refused:
            throw HTTPRejection(429, "too many connections from this address (connections.perHost)")
        }
    }

    private func admitted(
        _ admission: WebSocketUpgrade.Admission, _ upgrade: WebSocketUpgrade, _ agreement: ServerHandshake.Negotiated
    ) {
        guard !isTimedOut, channel.isOpen else { return }
        guard !table.isDraining else {
            return answer(HTTPResponse(status: 503, text: "the server is shutting down"))
        }
        switch admission {
        case .rejected(let response): answer(response)
        case .admitted(let found):
            var upgrade = upgrade
            upgrade.admission = found
            channel.resumeReading()
            channel.corked { decide(upgrade, agreement, buffer.mutableBytes) }
        }
    }

    private func decide(
        _ upgrade: WebSocketUpgrade, _ agreement: ServerHandshake.Negotiated, _ rest: UnsafeMutableRawBufferPointer
    ) {
        switch configuration.accept(upgrade) {
        case .reject(let response): answer(response)
        case .accept(let handler, let headers, let messageBytes):
            var limits = configuration.limits
            if let messageBytes { (limits.messageBytes, limits.frameBytes) = (messageBytes, messageBytes) }
            open(agreement, headers, limits, handler, rest)
        }
    }

    private func handlePlain(_ request: HTTPRequestHead, _ rest: UnsafeMutableRawBufferPointer) throws(HTTPRejection) {
        let client = channel.remoteAddress
        let plain = PlainRequest(head: request, remoteAddress: client, isFromProxy: isProxy)
        let answer: PlainResponse
        if let handled = configuration.handled?(plain) { answer = handled } else { answer = try response(to: plain) }
        if case .last(let response) = answer { return self.answer(response, to: request) }
        guard !table.isDraining else { throw HTTPRejection(503, "the server is shutting down") }
        guard table.count <= configuration.connectionsPerReactor else {
            throw HTTPRejection(503, "the server's connection limit is reached")
        }
        if let excess = configuration.memory.refusal(of: client) { throw HTTPRejection(503, excess.reason) }
        timer?.cancel()
        buffer.reset(keepingAtMost: 0)
        let conversation = conversation ?? PlainHTTPExchange(self, channel, configuration)
        self.conversation = conversation
        // Behind a proxy each request may come from another client, while memory is counted for only one.
        guard case .handled(let make) = answer else {
            return try conversation.answer(answer, to: request, mayContinue: !isProxy, rest)
        }
        let host = addressEntry.flatMap { $0.key.isLoopback ? nil : $0.key }
        try conversation.handle(make, plain, host: host, mayContinue: !isProxy, rest)
    }

    /// Returns the response to a request of a page.
    private func response(to plain: PlainRequest) throws(HTTPRejection) -> PlainResponse {
        guard plain.head.body == .empty else { throw HTTPRequestHead.bodyNotAccepted }
        let method = plain.head.method
        guard ["GET", "HEAD"].contains(method) || configuration.acceptsPost && method == "POST" else {
            throw HTTPRejection(
                405, configuration.acceptsPost ? "only GET and POST are supported" : "only GET is supported",
                headers: ["Allow": configuration.acceptsPost ? "GET, HEAD, POST" : "GET, HEAD"])
        }
        guard let answer = configuration.plain(plain) else { throw ServerHandshake.upgradeRequired }
        return answer
    }

    /// Ends the connection after the last response.
    ///
    /// - Parameter unreadBody: The number of bytes of the request's body that may still arrive.
    func endAfterAnswer(unreadBody: Int = 0) {
        isAnswered = true
        isEnding = true
        channel.closeAfterFlush(throwingAwayAtMost: Self.maximumDiscarded + unreadBody)
    }

    /// Waits for another request after a complete response.
    func awaitNext() {
        scanner = HTTPHeadScanner(limits: configuration.limits)
        timer = channel.reactor.schedule(after: configuration.limits.pages.idleTimeout, for: self) {
            $0.endAfterAnswer()
        }
    }

    /// Continues with buffered input.
    func readBuffered() {
        guard !isAnswered, let conversation else { return }
        limitHead()
        channel.corked {
            conversation.consumeBuffered { read($0) }
        }
        // A complete request is being processed already, or the WebSocket has started.
        if !isAnswered, conversation.isIdle { channel.resumeReading() }
    }

    /// Sends the last response of the connection.
    ///
    /// - Parameter request: The request, if its head is known.
    private func answer(_ response: HTTPResponse, to request: HTTPRequestHead? = nil) {
        if response.status >= 400 { configuration.refused?(response, channel.remoteAddress) }
        timer?.cancel()
        conversation?.end()
        buffer.reset(keepingAtMost: 0)
        channel.write { $0.append(response.encoded(headOnly: request?.method == "HEAD")) }
        endAfterAnswer(unreadBody: request.map(\.body) ?? .empty == .empty ? 0 : PlainHTTPExchange.maximumUnreadBody)
    }

    private func open(
        _ agreement: ServerHandshake.Negotiated, _ headers: HTTPHeaders, _ limits: WebSocketLimits,
        _ handler: any WebSocketHandler, _ rest: UnsafeMutableRawBufferPointer
    ) {
        timer?.cancel()
        if let conversation {
            conversation.end()
            channel.maximumReadBytes = Reactor.readBufferSize
            channel.resumeReading()
        }
        let compression = agreement.compression.flatMap { agreed in
            configuration.compression.map {
                MessageCompression(agreed, role: .server, settings: $0, codecs: table.codecs)
            }
        }
        let socket = WebSocket(
            channel, role: .server, subprotocol: agreement.subprotocol, limits: limits,
            times: configuration.times, compression: compression, handler: handler)
        socket.addressEntry = addressEntry
        table.insert(socket)
        table.remove(self)
        channel.delegate = socket
        var response = agreement.response
        for field in headers.fields { response.headers.add(field.name, field.value) }
        channel.write { $0.append(response.encoded()) }
        handler.webSocketDidOpen(socket)
        if !rest.isEmpty { socket.channel(channel, didRead: rest) }
    }
}
