internal import Bytes
internal import Networking
internal import Platform
internal import Transports

/// The HTTP exchange of a connection after its first page request: bodies, streamed responses and successive requests. It is created
/// with the first page, so that WebSocket connections do not need it.
///
/// While a response is in progress, the connection is not read, and input after the request is buffered. Requests are processed
/// in order, one at a time. While a handler works on a request, the connection is read, so that the end of the client is noticed.
final class PlainHTTPExchange: Resumable {
    /// The state of the exchange.
    private enum Phase {
        /// Waiting for a request.
        case idle
        /// Computing the response.
        case finding
        /// A handler decides about a request by its head.
        case admitting
        /// The body of a request arrives.
        case receiving
        /// A handler has the whole request.
        case handling
        case sending
        /// A handler writes the body of the response.
        case streaming
        case ended
    }

    /// The maximum number of bytes per read, because a peer may send requests faster than they are processed.
    private static let maximumReadBytes = 16 << 10
    /// The maximum number of bytes of an unread body that are discarded after the response, so that a client that is still sending
    /// can read the response.
    static let maximumUnreadBody = 1 << 20
    private static let continueExpectation = "100-continue"
    private static let permission = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    private unowned let upgrade: ServerUpgrade
    private let channel: ByteChannel
    private let configuration: ServerConfiguration
    private let limits: PageLimits
    private var phase = Phase.idle
    private var served = 0
    /// Input after the head that was read, or after the body if it was read.
    private var bufferedInput = ByteBuffer()
    private var counted = 0
    /// The account that counts these bytes; the channel has none after its end.
    private var countedIn: MemoryAccount?
    private var isQueued = false

    // The state of the current request with a handler.
    private var received: ReceivedRequest?
    private var bodyReader: HTTPBodyReader?
    private var body: [UInt8] = []
    /// The size of the response in memory.
    private var heldBytes = 0
    /// The body that the handler has, unless it is small.
    private(set) var heldBody: CountedBytes?
    /// The owner of the budget that counts the memory of the current request for its principal.
    private var budgetOwner: (any AnyObject & Sendable)?
    /// The bytes of the body that were not read, at most `maximumUnreadBody`.
    private var unreadBody = 0
    /// An object that the handlers of the connection's requests share.
    var attachment: AnyObject?

    // The state of the current response.
    private var isHead = false
    private var isChunked = false
    /// True if output was pending at the last check of a streamed response.
    private var wasBehind = false
    private var keepsAlive = false
    private var remainingBody: StreamedResponse.RemainingBody?
    private var offset = 0
    /// True while a piece is being read.
    private var isReading = false
    private var timeoutTimer: LoopTimer?
    private var acknowledged: UInt64 = 0
    /// The acknowledged bytes before the response.
    private var acknowledgedBefore: UInt64 = 0

    init(_ upgrade: ServerUpgrade, _ channel: ByteChannel, _ configuration: ServerConfiguration) {
        self.upgrade = upgrade
        self.channel = channel
        self.configuration = configuration
        limits = configuration.limits.pages
        channel.limits = configuration.times.pageChannel
        channel.maximumReadBytes = Self.maximumReadBytes
    }

    /// True if the next request may be processed.
    var isIdle: Bool { phase == .idle }
    var isAnswering: Bool { phase != .idle && phase != .ended }
    var isOpen: Bool { channel.isOpen && phase != .ended }
    var account: MemoryAccount? { channel.account }

    /// The budget of requests without a principal.
    private static let noPrincipal = MemoryBudget(limit: .max)

    /// Counts the memory of the connection for the principal of the current request too, until the response is complete. Returns the
    /// refusal of the request if the part of it that has arrived exceeds the principal's limit.
    func join(_ principal: MemoryBudget, of owner: any AnyObject & Sendable) -> HTTPRejection? {
        budgetOwner = owner
        channel.account?.join(principal)
        guard counted > 0, principal.usedBytes > principal.limit else { return nil }
        return HTTPRejection(503, MemoryLimitExceeded(.principal, principal.limit).reason)
    }

    /// Counts the body of the current request no longer: the handler has made something else of it.
    func releaseBody() { heldBody = nil }

    private func leavePrincipal() {
        guard budgetOwner != nil else { return }
        budgetOwner = nil
        channel.account?.join(Self.noPrincipal)
    }

    /// Makes the current response the last one.
    func answerNoMore() { keepsAlive = false }

    // MARK: Responding

    /// Responds to a request; `remainingBody` is the input after it.
    func answer(
        _ answer: PlainResponse, to request: HTTPRequestHead, mayContinue: Bool, _ rest: UnsafeMutableRawBufferPointer
    ) throws(HTTPRejection) {
        try accept(request, mayContinue: mayContinue, rest)
        beginWatch()
        switch answer {
        case .page(let reply): send(reply)
        case .last(let response):
            keepsAlive = false
            send(StreamedResponse(response))
        case .blocking(let find):
            phase = .finding
            let (reactor, pending) = (channel.reactor, pending)
            BlockingThreads.shared.run {
                let reply = find()
                reactor.execute { pending.value.conversation.didFind(reply) }
            }
        case .asynchronous(let find):
            phase = .finding
            let (reactor, pending) = (channel.reactor, pending)
            Task {
                let reply = await find()
                reactor.execute { pending.value.conversation.didFind(reply) }
            }
        case .handled: break
        }
    }

    /// Stops reading, and keeps the input after the head.
    private func accept(
        _ request: HTTPRequestHead, mayContinue: Bool, _ rest: UnsafeMutableRawBufferPointer
    ) throws(HTTPRejection) {
        served += 1
        isHead = request.method == "HEAD"
        keepsAlive = mayContinue && request.allowsMore && served < limits.requestsPerConnection
        unreadBody = 0
        channel.pauseReading()
        try bufferInput(rest)
        timeoutTimer?.cancel()
    }

    /// The exchange for a closure that returns to the reactor. It retains the upgrade that owns the exchange.
    private var pending: LoopBound<(upgrade: ServerUpgrade, conversation: PlainHTTPExchange)> {
        LoopBound((upgrade, self), on: channel.reactor)
    }

    private func didFind(_ reply: StreamedResponse) {
        guard phase == .finding, channel.isOpen else { return }
        channel.corked { send(reply) }
    }

    private func send(_ reply: StreamedResponse, isRefusal: Bool = true) {
        phase = .sending
        if isRefusal, reply.response.status >= 400 { configuration.refused?(reply.response, channel.remoteAddress) }
        offset = 0
        remainingBody = isHead ? nil : reply.remainingBody
        watchCancellation()
        channel.write {
            $0.append(reply.response.encoded(headOnly: isHead, length: reply.length, keepsAlive: keepsAlive))
        }
        scheduleResume()
    }

    /// Ends the transfer when its place is needed by another one.
    private func watchCancellation() {
        guard let transfer = remainingBody?.transfer else { return }
        let exchange = LoopBound(WeakReference(exchange: self), on: channel.reactor)
        let reactor = channel.reactor
        transfer.setCancellation {
            reactor.execute {
                guard let exchange = exchange.value.exchange, exchange.remainingBody?.transfer === transfer,
                    exchange.channel.isOpen
                else { return }
                exchange.close("the slowest reader of a page was replaced: others wait (pages.openFiles)")
            }
        }
    }

    /// The exchange of a transfer, which other threads may cancel.
    private struct WeakReference {
        weak var exchange: PlainHTTPExchange?
    }

    /// Queues the next step until the written output has been passed to the socket and other connections had their turn.
    private func scheduleResume() {
        guard !isQueued else { return }
        isQueued = true
        channel.reactor.scheduleResume(self)
    }

    func resume() {
        isQueued = false
        guard channel.isOpen else { return }
        switch phase {
        case .sending: sendMore()
        case .idle: upgrade.readBuffered()
        case .finding, .admitting, .receiving, .handling, .streaming, .ended: break
        }
    }

    /// Continues when the output has been sent.
    func didBecomeWritable() {
        switch phase {
        case .sending: scheduleResume()
        case .streaming: received?.handler?.didBecomeWritable()
        default: break
        }
    }

    private func sendMore() {
        // The channel calls back when less output is pending.
        guard channel.pendingBytes == 0, !isReading else { return }
        guard let remainingBody, offset < remainingBody.count else { return finish() }
        remainingBody.transfer?.recordProgress((channel.acknowledgedBytes ?? 0) &- acknowledgedBefore)
        let count = min(StreamedResponse.pieceBytes, remainingBody.count - offset)
        guard remainingBody.blocks else { return write(remainingBody.read(offset, count)) }
        isReading = true
        let (reactor, offset) = (channel.reactor, offset)
        let pending = pending
        BlockingThreads.shared.run {
            let bytes = remainingBody.read(offset, count)
            reactor.execute { pending.value.conversation.didRead(bytes) }
        }
    }

    private func didRead(_ bytes: [UInt8]?) {
        isReading = false
        guard phase == .sending, channel.isOpen else { return }
        write(bytes)
    }

    private func write(_ bytes: [UInt8]?) {
        guard let bytes, !bytes.isEmpty else {
            // The response has announced its length: the peer must detect that it is truncated.
            return close("a page was truncated while it was being sent")
        }
        offset += bytes.count
        channel.corked { channel.write { $0.append(bytes) } }
        scheduleResume()
    }

    private func finish() {
        timeoutTimer?.cancel()
        remainingBody = nil
        heldBytes = 0
        // A decrease of the counted memory never fails.
        try? count()
        guard keepsAlive else {
            phase = .ended
            return upgrade.endAfterAnswer(unreadBody: unreadBody)
        }
        leavePrincipal()
        phase = .idle
        upgrade.awaitNext()
        if bufferedInput.isEmpty { channel.resumeReading() } else { scheduleResume() }
    }

    // MARK: Requests with a handler

    /// Passes a request to a handler; `rest` is the input after its head.
    func handle(
        _ make: (ReceivedRequest) -> any RequestHandler, _ request: PlainRequest, host: AddressKey?, mayContinue: Bool,
        _ rest: UnsafeMutableRawBufferPointer
    ) throws(HTTPRejection) {
        if let expected = request.head.headers["Expect"], !HTTPHeaders.equal(expected, Self.continueExpectation) {
            throw HTTPRejection(417, "the only supported Expect is \(Self.continueExpectation)")
        }
        try accept(request.head, mayContinue: mayContinue, rest)
        phase = .admitting
        unreadBody = request.head.body == .empty ? 0 : Self.maximumUnreadBody
        timeoutTimer = channel.reactor.schedule(after: configuration.limits.handshakeTimeout, for: self) {
            $0.reject(HTTPRejection(408, "the admission of the request took too long"))
        }
        let received = ReceivedRequest(request, host: host, over: self, on: channel.reactor)
        self.received = received
        received.begin(make)
    }

    /// Reads the body for the handler of the current request.
    func readBody(_ limits: HTTPBodyLimits) {
        guard phase == .admitting, let head = received?.request.head else { return }
        do throws(HTTPRejection) {
            bodyReader = try HTTPBodyReader(head.body, limits)
        } catch {
            return reject(error)
        }
        phase = .receiving
        timeoutTimer?.cancel()
        timeoutTimer = channel.reactor.schedule(after: limits.time, for: self) {
            $0.reject(HTTPRejection(408, "the body was incomplete after \(limits.time) (\(limits.settings.time))"))
        }
        if head.body != .empty, head.minorVersion >= 1, head.headers["Expect"] != nil, bufferedInput.isEmpty {
            channel.write { $0.append(Self.permission) }
        }
        channel.corked { consumeBuffered { receiveBody($0) } }
        if phase == .receiving { channel.resumeReading() }
    }

    /// Handles input that arrives before the response.
    func receiveInput(_ bytes: UnsafeMutableRawBufferPointer) {
        guard phase != .receiving else { return receiveBody(bytes) }
        bufferPausedInput(bytes)
        if phase == .handling || phase == .streaming, bufferedInput.count >= Self.maximumReadBytes {
            channel.pauseReading()
        }
    }

    private func receiveBody(_ bytes: UnsafeMutableRawBufferPointer) {
        guard phase == .receiving, var reader = bodyReader else { return }
        do throws(HTTPRejection) {
            let count = try reader.read(UnsafeRawBufferPointer(bytes), into: &body)
            bodyReader = reader
            try bufferInput(UnsafeMutableRawBufferPointer(rebasing: bytes[count...]))
            try self.count()
        } catch {
            return reject(error)
        }
        if reader.isComplete { passBody() }
    }

    /// Passes the whole body to the handler. The connection is read further, so that the end of the client is noticed.
    private func passBody() {
        phase = .handling
        timeoutTimer?.cancel()
        (bodyReader, unreadBody) = (nil, 0)
        let whole = body
        body = []
        if whole.count >= ByteChannel.minimumCountedBytes, let countedIn {
            heldBody = CountedBytes(whole.count, in: countedIn, owner: budgetOwner)
            counted -= whole.count
        }
        // A decrease of the counted memory never fails.
        try? count()
        if bufferedInput.count < Self.maximumReadBytes { channel.resumeReading() }
        received?.handler?.didReceive(whole)
    }

    private func reject(_ rejection: HTTPRejection) {
        guard phase == .admitting || phase == .receiving, let handler = received?.handler else { return }
        phase = .handling
        timeoutTimer?.cancel()
        if let bodyReader {
            // Until the end of the body is known, its rest could be read as the next request, even if the limit is reached.
            unreadBody =
                bodyReader.isComplete ? 0 : max(1, min(bodyReader.remainingBytes, Self.maximumUnreadBody))
        }
        channel.pauseReading()
        handler.didReject(rejection)
    }

    /// Sends the response of the current request's handler.
    func respond(_ reply: StreamedResponse, isRefusal: Bool) {
        guard isOpen, received != nil else { return }
        received = nil
        timeoutTimer?.cancel()
        if unreadBody > 0 { keepsAlive = false }
        (bodyReader, body, heldBytes, heldBody) = (nil, [], reply.ownBytes, nil)
        channel.pauseReading()
        beginWatch()
        // Without a limit: the response exists, and the client must not repeat a request that has run.
        countResponse()
        channel.corked { send(reply, isRefusal: isRefusal) }
    }

    // MARK: Streamed responses

    var isWritable: Bool { channel.isWritable }
    var pendingBytes: Int { channel.pendingBytes }
    var acknowledgedBytes: UInt64? { channel.acknowledgedBytes }
    func inOneWrite(_ body: () -> Void) { channel.corked(body) }

    /// Sends the head of a response whose body the handler of the current request writes. The connection is read further, so that
    /// the end of the client is noticed.
    func beginStreaming(_ response: HTTPResponse) {
        guard isOpen, phase == .handling, let request = received?.request.head else { return }
        phase = .streaming
        (heldBody, isChunked) = (nil, request.minorVersion >= 1)
        if !isChunked || unreadBody > 0 { keepsAlive = false }
        channel.limits = configuration.times.channel
        channel.write {
            $0.append(
                response.encoded(headOnly: true, keepsAlive: keepsAlive, framing: isChunked ? .chunked : .close))
        }
        watchStream()
    }

    func writePiece(_ count: Int, shared: SharedBytes?, _ head: (inout ByteBuffer) -> Void) {
        // An empty chunk would end the body.
        guard phase == .streaming, channel.isOpen, !isHead, count > 0 else { return }
        channel.corked {
            channel.write {
                if isChunked { $0.append(Array("\(String(count, radix: 16))\r\n".utf8)) }
                head(&$0)
            }
            if let shared { channel.write(shared: shared) }
            if isChunked { channel.write { $0.append("\r\n" as StaticString) } }
        }
    }

    func endStreaming() {
        guard isOpen, phase == .streaming else { return }
        received = nil
        timeoutTimer?.cancel()
        channel.pauseReading()
        channel.limits = configuration.times.pageChannel
        phase = .sending
        beginWatch()
        // A write, even an empty one, has the channel call back when all output is sent.
        channel.write { if isChunked, !isHead { $0.append("0\r\n\r\n" as StaticString) } }
        scheduleResume()
    }

    private func watchStream() {
        acknowledged = channel.acknowledgedBytes ?? 0
        wasBehind = channel.pendingBytes > 0
        timeoutTimer = channel.reactor.schedule(after: limits.transferInterval, for: self) { $0.checkStream() }
    }

    /// Checks that the peer accepts output as long as some is pending.
    private func checkStream() {
        guard phase == .streaming, channel.isOpen else { return }
        let accepted = (channel.acknowledgedBytes ?? 0) &- acknowledged
        guard wasBehind, channel.pendingBytes > 0, accepted < UInt64(limits.minimumBytesPerInterval) else {
            return watchStream()
        }
        close(tooSlow(accepted, "a stream"))
    }

    /// Resets the connection at the request of the current request's handler.
    func abort() {
        received = nil
        close("the server ended the request")
    }

    // MARK: Early input

    private func bufferInput(_ bytes: UnsafeMutableRawBufferPointer) throws(HTTPRejection) {
        guard !bytes.isEmpty else { return }
        bufferedInput.append(UnsafeRawBufferPointer(bytes))
        try count()
    }

    /// Buffers input that arrives while reading is paused.
    func bufferPausedInput(_ bytes: UnsafeMutableRawBufferPointer) {
        bufferedInput.append(UnsafeRawBufferPointer(bytes))
        if (try? count()) == nil { close("too many pipelined requests") }
    }

    private func count() throws(HTTPRejection) {
        let held = bufferedInput.count + body.count + heldBytes
        let bufferedBytes = held < ByteChannel.minimumCountedBytes ? 0 : held
        guard bufferedBytes != counted, let account = channel.account else { return }
        countedIn = account
        let change = bufferedBytes - counted
        if change > 0 {
            do { try account.reserve(change) } catch { throw HTTPRejection(503, error.reason) }
        } else {
            account.release(-change)
        }
        counted = bufferedBytes
    }

    private func countResponse() {
        let held = bufferedInput.count + heldBytes
        let bufferedBytes = held < ByteChannel.minimumCountedBytes ? 0 : held
        guard let account = channel.account else { return }
        countedIn = account
        _ = account.adjustUsage(by: bufferedBytes - counted)
        counted = bufferedBytes
    }

    /// Passes the buffered input to `body`, which may call `answer` with the rest of it.
    func consumeBuffered(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
        var bytes = ByteBuffer()
        swap(&bytes, &bufferedInput)
        body(bytes.mutableBytes)
        // This use after `body` keeps the memory alive until then.
        bytes.removeAll()
        // A decrease of the counted memory never fails.
        try? count()
    }

    // MARK: Time limits and end

    private func beginWatch() {
        acknowledged = channel.acknowledgedBytes ?? 0
        acknowledgedBefore = acknowledged
        watch()
    }

    /// Checks periodically that the peer accepts the response and that the disk delivers it.
    private func watch() {
        timeoutTimer = channel.reactor.schedule(after: limits.transferInterval, for: self) { $0.parseRequest() }
    }

    private func parseRequest() {
        guard phase == .sending || phase == .finding, channel.isOpen else { return }
        let now = channel.acknowledgedBytes ?? 0
        guard now &- acknowledged >= UInt64(limits.minimumBytesPerInterval) else {
            return close(tooSlow(now &- acknowledged, "a page"))
        }
        acknowledged = now
        watch()
    }

    private func tooSlow(_ accepted: UInt64, _ what: String) -> String {
        "the client reads \(what) too slowly: \(accepted) bytes in \(limits.transferInterval); the minimum is "
            + "\(limits.minimumBytesPerInterval) bytes (pages.minimumBytesPerInterval)"
    }

    private func close(_ reason: String) {
        phase = .ended
        channel.reset(TransportError(.closed, reason))
    }

    /// Ends the exchange, because the connection closed or became a WebSocket.
    func end() {
        phase = .ended
        timeoutTimer?.cancel()
        remainingBody = nil
        (bodyReader, body, heldBytes, heldBody) = (nil, [], 0, nil)
        if counted > 0 { countedIn?.release(counted) }
        (counted, countedIn, budgetOwner) = (0, nil, nil)
        let received = received
        self.received = nil
        received?.disconnect()
    }
}

extension HTTPRequestHead {
    /// True if another request may follow on the connection (RFC 9112 §9.3).
    fileprivate var allowsMore: Bool { minorVersion >= 1 && !headers.list("Connection", contains: "close") }
}
