internal import Bytes
internal import Networking
internal import Platform
internal import Transports

/// What a connection says and is told after it has asked for a page: answers that are larger than what is kept of them, and
/// requests one after the other. It begins with the first page, so that those who come for a WebSocket have none of it.
///
/// While an answer is under way nothing is read, and what was read with the request is kept: requests are answered in their
/// order, one at a time.
final class PlainConversation: InLine {
    private enum Phase {
        /// Waits for a request.
        case idle
        /// The answer is being looked up.
        case finding
        case sending
        case ended
    }

    /// So much is read at once of a peer that may send more requests than are answered.
    private static let mostRead = 16 << 10

    private unowned let upgrade: ServerUpgrade
    private let channel: ByteChannel
    private let configuration: ServerConfiguration
    private let limits: PageLimits
    private var phase = Phase.idle
    private var served = 0
    /// What came behind the request that is being answered.
    private var kept = ByteBuffer()
    private var counted = 0
    private var isInLine = false

    // Of the answer that is being sent.
    private var isHead = false
    private var goesOn = false
    private var rest: PageReply.Rest?
    private var offset = 0
    /// Whether a piece is being read.
    private var isReading = false
    private var patience: LoopTimer?
    private var acknowledged: UInt64 = 0

    init(_ upgrade: ServerUpgrade, _ channel: ByteChannel, _ configuration: ServerConfiguration) {
        self.upgrade = upgrade
        self.channel = channel
        self.configuration = configuration
        limits = configuration.limits.pages
        channel.limits = configuration.times.pageChannel
        channel.mostRead = Self.mostRead
    }

    /// Whether the next request may come.
    var isIdle: Bool { phase == .idle }
    var isAnswering: Bool { phase == .finding || phase == .sending }

    /// The answer under way is the last.
    func answerNoMore() { goesOn = false }

    // MARK: Answering

    /// Answers a request; `rest` is what came behind it.
    func answer(
        _ answer: PlainAnswer, to request: HTTPRequestHead, mayGoOn: Bool, _ rest: UnsafeMutableRawBufferPointer
    ) throws(HTTPRejection) {
        served += 1
        isHead = request.method == "HEAD"
        goesOn = mayGoOn && request.allowsMore && served < limits.requestsPerConnection
        channel.pauseReading()
        try keep(rest)
        patience?.cancel()
        acknowledged = channel.acknowledgedBytes ?? 0
        watch()
        switch answer {
        case .page(let reply): send(reply)
        case .last(let response):
            goesOn = false
            send(PageReply(response))
        case .lookUp(let find):
            phase = .finding
            let pending = Pending(upgrade: upgrade, conversation: self)
            let reactor = channel.reactor
            BlockingThreads.shared.run {
                let reply = find()
                reactor.execute { pending.conversation.found(reply) }
            }
        case .ask(let find):
            phase = .finding
            let pending = Pending(upgrade: upgrade, conversation: self)
            let reactor = channel.reactor
            Task {
                let reply = await find()
                reactor.execute { pending.conversation.found(reply) }
            }
        }
    }

    /// The way to a thread that reads files, and back to the reactor. It holds what the conversation is part of.
    ///
    /// `@unchecked Sendable`: both are used on their reactor alone.
    private struct Pending: @unchecked Sendable {
        let upgrade: ServerUpgrade
        let conversation: PlainConversation
    }

    private func found(_ reply: PageReply) {
        guard phase == .finding, channel.isOpen else { return }
        channel.corked { send(reply) }
    }

    private func send(_ reply: PageReply) {
        phase = .sending
        if reply.response.status >= 400 { configuration.refused?(reply.response, channel.remoteAddress) }
        offset = 0
        rest = isHead ? nil : reply.rest
        channel.write {
            $0.append(reply.response.encoded(headOnly: isHead, length: reply.length, goesOn: goesOn))
        }
        stand()
    }

    /// What is to be done next is done when what was written so far has been handed to the socket, and others had their turn.
    private func stand() {
        guard !isInLine else { return }
        isInLine = true
        channel.reactor.standInLine(self)
    }

    func goOn() {
        isInLine = false
        guard channel.isOpen else { return }
        switch phase {
        case .sending: sendMore()
        case .idle: upgrade.readKept()
        case .finding, .ended: break
        }
    }

    /// All that waited has been taken.
    func didBecomeWritable() { if phase == .sending { stand() } }

    private func sendMore() {
        // The channel tells when it is less.
        guard channel.pendingBytes == 0, !isReading else { return }
        guard let rest, offset < rest.count else { return finish() }
        let count = min(PageReply.pieceBytes, rest.count - offset)
        guard rest.blocks else { return write(rest.read(offset, count)) }
        isReading = true
        let (reactor, offset) = (channel.reactor, offset)
        let pending = Pending(upgrade: upgrade, conversation: self)
        BlockingThreads.shared.run {
            let bytes = rest.read(offset, count)
            reactor.execute { pending.conversation.didRead(bytes) }
        }
    }

    private func didRead(_ bytes: [UInt8]?) {
        isReading = false
        guard phase == .sending, channel.isOpen else { return }
        write(bytes)
    }

    private func write(_ bytes: [UInt8]?) {
        guard let bytes, !bytes.isEmpty else {
            // Its length was promised: the peer has to see that this is not all.
            return end("a page became shorter while it was being sent")
        }
        offset += bytes.count
        channel.corked { channel.write { $0.append(bytes) } }
        stand()
    }

    private func finish() {
        patience?.cancel()
        rest = nil
        guard goesOn else {
            phase = .ended
            return upgrade.endAfterAnswer()
        }
        phase = .idle
        upgrade.awaitNext()
        if kept.isEmpty { channel.resumeReading() } else { stand() }
    }

    // MARK: What came too early

    private func keep(_ bytes: UnsafeMutableRawBufferPointer) throws(HTTPRejection) {
        guard !bytes.isEmpty else { return }
        kept.append(UnsafeRawBufferPointer(bytes))
        try count()
    }

    /// Bytes that came though nothing is read.
    func keepMore(_ bytes: UnsafeMutableRawBufferPointer) {
        kept.append(UnsafeRawBufferPointer(bytes))
        if (try? count()) == nil { end("more requests wait than there is room for") }
    }

    private func count() throws(HTTPRejection) {
        let held = kept.count < ByteChannel.smallestHeld ? 0 : kept.count
        guard held != counted, let account = channel.account else { return }
        let change = held - counted
        if change > 0 {
            do { try account.take(change) } catch { throw HTTPRejection(503, error.reason) }
        } else {
            account.release(-change)
        }
        counted = held
    }

    /// Gives what was kept to `body`, which may call `answer` with the rest of it.
    func takeKept(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
        var bytes = ByteBuffer()
        swap(&bytes, &kept)
        body(bytes.mutableBytes)
        // Used behind the reading, so that their memory lives until then.
        bytes.removeAll()
        // What is less than before always has room.
        try? count()
    }

    // MARK: Time, and the end

    /// Looks now and then whether the peer takes what it asked for, and whether the disk gives it.
    private func watch() {
        patience = channel.reactor.schedule(after: limits.patience, for: self) { $0.look() }
    }

    private func look() {
        guard phase == .sending || phase == .finding, channel.isOpen else { return }
        let now = channel.acknowledgedBytes ?? 0
        guard now &- acknowledged >= UInt64(limits.leastBytes) else {
            return end(
                "a page was not taken: \(now &- acknowledged) bytes in \(limits.patience); at least "
                    + "\(limits.leastBytes) are expected (pages.leastBytes)")
        }
        acknowledged = now
        watch()
    }

    private func end(_ reason: String) {
        phase = .ended
        channel.reset(TransportError(.closed, reason))
    }

    /// The connection has gone, or is not for pages any more.
    func leave() {
        phase = .ended
        patience?.cancel()
        rest = nil
        if counted > 0 { channel.account?.release(counted) }
        counted = 0
    }
}

extension HTTPRequestHead {
    /// Whether another request may follow over the same connection (RFC 9112 §9.3).
    fileprivate var allowsMore: Bool { minorVersion >= 1 && !headers.list("Connection", contains: "close") }
}
