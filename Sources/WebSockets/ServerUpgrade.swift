internal import Bytes
internal import Networking
internal import Transports

/// A connection to a server from its first byte to the answer of the handshake, or for as long as pages are asked for over it. It
/// is gone, with the head and all memory for it, when the WebSocket begins.
final class ServerUpgrade: ByteChannelDelegate {
    /// What is still read of a request after its answer: a client that is sending sees the answer, one that never stops
    /// costs no more.
    private static let mostThrownAway = 64 << 10

    private let channel: ByteChannel
    private let configuration: ServerConfiguration
    private let table: ConnectionTable
    private var scanner: HTTPHeadScanner
    // Here, where there is room between: all that ask for a WebSocket have one of these for a while.
    private var isAnswered = false
    private var isTimedOut = false
    /// It is ended, as another one takes its place.
    private(set) var givesWay = false
    /// The last answer is on its way, and the connection ends behind it.
    private var isEnding = false
    /// Which of its reactor's connections it is, in the order in which they came.
    let number: UInt64
    /// Whether the peer may speak for others.
    private let isProxy: Bool
    private var buffer = ByteBuffer()
    private var timer: LoopTimer?
    private var addressEntry: AddressEntry?
    /// Set when the first page was asked for.
    private var conversation: PlainConversation?

    init(
        _ channel: ByteChannel, _ configuration: ServerConfiguration, _ table: ConnectionTable, _ entry: AddressEntry?,
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
        table.add(self)
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
            upgrade.answer(HTTPResponse(status: 408, text: "the handshake took too long"))
        }
    }

    func cancel() { channel.close() }

    /// Whether nothing that it asked for is being answered.
    var isSilent: Bool { !givesWay && !isAnswered && conversation?.isAnswering != true }

    func giveWay() {
        givesWay = true
        cancel()
    }

    /// Ends it, behind the answer that is under way.
    func endBehindAnswer() {
        if let conversation, conversation.isAnswering {
            conversation.answerNoMore()
        } else if !isEnding {
            cancel()
        }
    }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        guard !isAnswered else { return }
        if let conversation {
            guard conversation.isIdle else { return conversation.keepMore(bytes) }
            // A request has begun, and has as long as the first.
            if buffer.isEmpty { limitHead() }
        }
        // Nearly every head comes in one piece and is read where it lies.
        if buffer.isEmpty { return read(bytes) }
        // What is read is nobody else's meanwhile: whoever keeps or forgets something does so in `buffer`.
        var whole = ByteBuffer()
        swap(&whole, &buffer)
        whole.append(UnsafeRawBufferPointer(bytes))
        // Used behind the reading in any case, so that its memory lives until then.
        if readHead(whole.mutableBytes) { whole.removeAll() } else { swap(&whole, &buffer) }
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) { conversation?.didBecomeWritable() }

    var representedAddress: SocketAddress? { addressEntry?.client }

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        timer?.cancel()
        conversation?.leave()
        table.remove(self)
    }

    /// Reads all bytes so far, which lie elsewhere than in `buffer`, and keeps them if they are not yet a head.
    private func read(_ bytes: UnsafeMutableRawBufferPointer) {
        if !readHead(bytes) { buffer.append(UnsafeRawBufferPointer(bytes)) }
    }

    /// Reads a head and does what it asks for, or answers that it can be none. False when it is not whole. The bytes must not lie in
    /// `buffer`.
    private func readHead(_ bytes: UnsafeMutableRawBufferPointer) -> Bool {
        switch scanner.scan(UnsafeRawBufferPointer(bytes)) {
        case .incomplete: return false
        case .rejection(let rejection): answer(rejection.response)
        case .complete(let length):
            do throws(HTTPRejection) {
                let request = try HTTPRequestHead.parse(UnsafeRawBufferPointer(rebasing: bytes[..<length]))
                try handle(request, rest: UnsafeMutableRawBufferPointer(rebasing: bytes[length...]))
            } catch {
                answer(error.response)
            }
        }
        return true
    }

    private func handle(_ request: HTTPRequestHead, rest: UnsafeMutableRawBufferPointer) throws(HTTPRejection) {
        if isProxy { try findClient(request) }
        // Before anything else, so that nothing is done for a page that may not use the server.
        if let check = configuration.check, let refusal = check(request, channel.localAddress) {
            return answer(refusal, headOnly: request.method == "HEAD")
        }
        guard request.wantsWebSocket else { return try handlePlain(request, rest) }
        let agreement = try ServerHandshake.agree(
            request, subprotocols: configuration.subprotocols, compression: configuration.compression)
        guard !table.isDraining else { throw HTTPRejection(503, "the server shuts down") }
        guard table.count <= configuration.connectionsPerReactor else {
            throw HTTPRejection(503, "the server has as many connections as it takes")
        }
        let remoteAddress = channel.remoteAddress
        if let excess = configuration.memory.refusal(of: remoteAddress) { throw HTTPRejection(503, excess.reason) }
        let upgrade = WebSocketUpgrade(
            request: request, subprotocol: agreement.subprotocol, remoteAddress: remoteAddress,
            isSecure: channel.isSecure, clientCertificateSubject: channel.peerSubject, reactor: channel.reactor)
        guard let admit = configuration.admit else { return decide(upgrade, agreement, rest) }
        // A peer that sends before it is answered waits, or is kept up to the size of a buffer.
        channel.pauseReading()
        buffer.reset(keepingAtMost: 0)
        buffer.append(UnsafeRawBufferPointer(rest))
        isAnswered = true
        let pending = Pending(upgrade: self)
        Task(executorPreference: channel.reactor.tasks) {
            let admission = await admit(upgrade)
            let reactor = upgrade.reactor
            reactor.run { pending.upgrade.admitted(admission, upgrade, agreement) }
        }
    }

    /// From here on the connection is its client's, as if that had come without the proxy.
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
            throw HTTPRejection(429, "as many connections come from this address as may (connectionsPerAddress)")
        }
    }

    /// The way back from a task to the reactor.
    ///
    /// `@unchecked Sendable`: the upgrade is used on its reactor alone.
    private struct Pending: @unchecked Sendable { let upgrade: ServerUpgrade }

    private func admitted(
        _ admission: WebSocketUpgrade.Admission, _ upgrade: WebSocketUpgrade, _ agreement: ServerHandshake.Agreement
    ) {
        guard !isTimedOut, channel.isOpen else { return }
        guard !table.isDraining else {
            return answer(HTTPResponse(status: 503, text: "the server shuts down"))
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
        _ upgrade: WebSocketUpgrade, _ agreement: ServerHandshake.Agreement, _ rest: UnsafeMutableRawBufferPointer
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
        guard ["GET", "HEAD"].contains(request.method) || configuration.takesPost && request.method == "POST" else {
            throw HTTPRejection(
                405, configuration.takesPost ? "only GET and POST are served here" : "only GET is served here",
                headers: ["Allow": configuration.takesPost ? "GET, HEAD, POST" : "GET, HEAD"])
        }
        let client = channel.remoteAddress
        let plain = PlainRequest(head: request, remoteAddress: client, isFromProxy: isProxy)
        guard let answer = configuration.plain(plain) else { throw ServerHandshake.upgradeRequired }
        if case .last(let response) = answer { return self.answer(response, headOnly: request.method == "HEAD") }
        guard !table.isDraining else { throw HTTPRejection(503, "the server shuts down") }
        guard table.count <= configuration.connectionsPerReactor else {
            throw HTTPRejection(503, "the server has as many connections as it takes")
        }
        if let excess = configuration.memory.refusal(of: client) { throw HTTPRejection(503, excess.reason) }
        timer?.cancel()
        buffer.reset(keepingAtMost: 0)
        let conversation = conversation ?? PlainConversation(self, channel, configuration)
        self.conversation = conversation
        // Behind a proxy each request may be another client's, and what is held counts for one.
        try conversation.answer(answer, to: request, mayGoOn: !isProxy, rest)
    }

    /// The answer was the last.
    func endAfterAnswer() {
        isAnswered = true
        isEnding = true
        channel.closeAfterFlush(throwingAwayAtMost: Self.mostThrownAway)
    }

    /// The answer has been sent, and there may be another request.
    func awaitNext() {
        scanner = HTTPHeadScanner(limits: configuration.limits)
        timer = channel.reactor.schedule(after: configuration.limits.pages.idleTime, for: self) { $0.endAfterAnswer() }
    }

    /// Goes on with what came before it was asked for.
    func readKept() {
        guard !isAnswered, let conversation else { return }
        limitHead()
        channel.corked {
            conversation.takeKept { read($0) }
        }
        // Not when it was whole: then it is being answered, or the WebSocket has begun.
        if !isAnswered, conversation.isIdle { channel.resumeReading() }
    }

    private func answer(_ response: HTTPResponse, headOnly: Bool = false) {
        isAnswered = true
        isEnding = true
        if response.status >= 400 { configuration.refused?(response, channel.remoteAddress) }
        timer?.cancel()
        conversation?.leave()
        buffer.reset(keepingAtMost: 0)
        channel.write { $0.append(response.encoded(headOnly: headOnly)) }
        channel.closeAfterFlush(throwingAwayAtMost: Self.mostThrownAway)
    }

    private func open(
        _ agreement: ServerHandshake.Agreement, _ headers: HTTPHeaders, _ limits: WebSocketLimits,
        _ handler: any WebSocketHandler, _ rest: UnsafeMutableRawBufferPointer
    ) {
        timer?.cancel()
        if let conversation {
            conversation.leave()
            channel.mostRead = Reactor.readBufferSize
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
        table.add(socket)
        table.remove(self)
        channel.delegate = socket
        var response = agreement.response
        for field in headers.fields { response.headers.add(field.name, field.value) }
        channel.write { $0.append(response.encoded()) }
        handler.webSocketDidOpen(socket)
        if !rest.isEmpty { socket.channel(channel, didRead: rest) }
    }
}
