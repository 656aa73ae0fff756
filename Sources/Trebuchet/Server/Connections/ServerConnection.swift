internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// One client's connection, as the server sees it: calls come in, answers and streams go out.
///
/// `@unchecked Sendable`: everything runs on the shard's reactor.
final class ServerConnection: StreamSubscriber, @unchecked Sendable {
    let shard: ServerShard
    let name: ConnectionName
    /// What carries its messages; one that does nothing once the connection is gone. It is read and written in one step, so access
    /// to it needs no check.
    @exclusivity(unchecked) private(set) var link: any MessageLink
    /// How dates are written in what is sent.
    let dates: DateForm
    private(set) var isOpen = true
    private var departure = Departure.none
    private var isBehind = false
    private var wasGreeted = false
    /// Whether answers of its calls are kept.
    var remembers = false
    private var malformedInRow: UInt16 = 0
    /// Bytes of the largest message that its client takes.
    let largestMessage: UInt32
    /// Its streams, as far as shares go.
    var use = StreamUse()
    /// Streams that were given a name; small, since each idle connection has it, and it begins anew after the last one.
    var streamCount: UInt32 = 0
    /// Calls that are not answered yet, by callID.
    var running: [[UInt8]: RunningCall] = [:]
    /// Of these, what counts: how many, and the bytes of their messages.
    var load = CallLoad()
    /// Those that go to actors of other reactors; one for each reactor, from the first call on.
    var crossings: [CrossingCalls] = []
    /// Streams by streamID.
    var streams = ConnectionStreams()
    /// Of these, those of actors that look at who observes them, with the actors' names.
    var gated: [[UInt8]: ActorName] = [:]
    /// Of its streams, at a server with rules, what each is of.
    var permitted: [[UInt8]: AskedStream] = [:]
    /// Streams that are being begun, by streamID: the actor may be on another reactor.
    var beginning: [[UInt8]: StreamRequest] = [:]
    /// Whether streams from other reactors were asked for that may have nothing to show yet.
    var mayAwaitStreams = false
    /// Who is at the other end, at a server that asks.
    let caller: Caller?
    /// By the monotonic clock.
    let opened = MonotonicClock.now
    /// Of the other end. The system is asked for it once.
    private(set) lazy var address = caller?.connection.remoteAddress ?? link.remoteAddress
    /// Whether its calls have to be looked at before they are made.
    private(set) var isGuarded: Bool
    var isRevoked = false { didSet { look() } }
    /// Whether the server itself is at the other end, for its actors or those of another node.
    let isServer: Bool
    /// Whether what is in hand is not the client's doing, or was counted before.
    var isCounted = false
    /// Calls that stand in line with others that may suspend.
    var queued = 0
    /// Whether its calls may have to stand behind others that are at another node.
    var hasCallsElsewhere = false
    /// At a server with rates, from the first call on.
    var buckets: ConnectionBuckets?
    /// At a server that keeps what it has granted, from the first call on.
    var grants: KeptGrants?
    /// Where the bytes of calls under way are counted, from the first one on.
    var memory: MemoryAccount?
    /// What it has of its principal's shares.
    let seat: PrincipalSeat?
    /// Set when its client has said who it is, to hand over references to actors of its own.
    /// Read by each call, so that access to it is not checked: nothing here calls others while it changes it.
    @exclusivity(unchecked) var hosting: HostingConnection?
    // Last, so that what every call reads lies together.
    /// Set where its client is at another node.
    let upstream: Upstream?
    /// What it has under way at other nodes, from the first on.
    var relays: ConnectionRelays? { didSet { look() } }
    /// Streams of actors that may move to another node, by streamID.
    var placed: [[UInt8]: PlacedStream] = [:]

    private enum Departure: UInt8 {
        case none
        /// The client was told to go, and may not know yet.
        case told
        /// The pong has arrived. The client's program may see `goAway` later than its network: a browser answers pings by itself.
        case heard
        /// All calls are refused: a client that keeps calling must not delay the shutdown.
        case dismissed
    }

    var isDraining: Bool { departure != .none }
    /// Whether more may come of what its client sent before it knew that it is to go.
    var isLeaving: Bool { departure == .told || departure == .heard && !hasNoCalls }

    init(
        _ link: any MessageLink, name: ConnectionName, shard: ServerShard, caller: Caller? = nil, stake: Stake? = nil,
        largestMessage: Int = .max, dates: DateForm = .milliseconds, upstream: Upstream? = nil
    ) {
        self.upstream = upstream
        self.name = name
        self.largestMessage = UInt32(clamping: min(largestMessage, shard.limits.clientMessageSize))
        self.caller = caller
        isServer = caller?.isServer == true
        self.link = link
        self.dates = dates
        self.shard = shard
        isGuarded = shard.isGuarded
        seat = caller?.principal.map { PrincipalSeat(shard.parts.principalMemory.part(of: $0.id), stake) }
        if let seat { link.memory?.join(seat.memory.budget) }
        shard.add(self)
        didOpen()
        guard let caller else { return }
        // Held until the connection closes, and then let go.
        caller.connection.endsStreams { self.endStreams(of: $0, $1) }
        caller.connection.followsRights { self.shard.reactor.run { self.rightsDidChange() } }
        if isUnderRules {
            // Not where it is set: that may be a call of this connection's.
            caller.connection.onPrincipalChange { self.shard.reactor.execute { self.endRefusedStreams() } }
        }
        // One of another node's has been greeted there.
        if upstream == nil, !isServer { shard.onConnect?(caller.connection) }
    }

    // MARK: Messages in

    /// Handles one message. The bytes are valid during the call.
    func receive(_ bytes: UnsafeRawBufferPointer) {
        // A message is handled inside of another by clients in this process alone, and those are few deep.
        guard let place = shard.scans.take() else { return refuse(EnvelopeError("too many messages at once")) }
        defer { shard.scans.giveBack() }
        do {
            try place.pointee.scan(bytes)
        } catch {
            return refuse(error)
        }
        handle(Message(bytes: bytes, envelope: UnsafePointer(place)))
    }

    @inline(__always)
    private func handle(_ message: borrowing Message) {
        let kind = message.kind
        if kind == .invocation {
            malformedInRow = 0
            return isDraining ? receiveLate(message) : invoke(message)
        }
        switch kind {
        case .repeat: if isDraining { receiveLate(message) } else { receiveRepeat(message) }
        case .cancel: cancel(message)
        case .streamEnd: unsubscribe(message)
        case .streamResume: if isDraining { resumeElsewhere(message) } else { resume(message) }
        default:
            do throws(EnvelopeError) {
                try handleRare(message)
            } catch {
                return refuse(error)
            }
        }
        malformedInRow = 0
    }

    private func handleRare(_ message: borrowing Message) throws(EnvelopeError) {
        switch message.kind {
        case .hello: try greet(message)
        case .response: try takeAnswer(message)
        case .goAway: clientLeaves()
        default: throw EnvelopeError("a client does not send \(message.kind) messages")
        }
    }

    /// Answers a message that makes no sense.
    func refuse(_ error: EnvelopeError) {
        malformedInRow += 1
        // Whatever it was about.
        tellRefusal(of: "", "", TrebuchetError(.init(error.code), error.message))
        if let callID = error.callID {
            fail(Array(callID.utf8), TrebuchetError(.invalidArguments, error.message))
        } else {
            tell(error.code, error.message)
        }
        if malformedInRow >= min(shard.limits.malformedMessages, Int(UInt16.max)) {
            link.close(.policyViolation, reason: "\(malformedInRow) malformed messages in a row")
        }
    }

    /// Says what is wrong where no call or stream is known to which it could be said.
    func tell(_ code: ErrorCode, _ message: String) {
        shard.counts.count(.error(code.rawValue))
        link.send { EnvelopeWriter.error(code: code, message: message, into: &$0) }
    }

    /// Tells the client what its connection is called and what may be sent over it. The first time is free.
    private func greet(_ message: borrowing Message) throws(EnvelopeError) {
        let client = message.envelope.pointee.client
        let isNewHost = hosting == nil && !client.isAbsent
        if wasGreeted, !isNewHost, shard.limits.hasRates, let refusal = rateRefusal(of: "hello") {
            return link.send {
                EnvelopeWriter.error(
                    code: .rateLimited, message: refusal.message,
                    retryAfterMilliseconds: refusal.retryAfter?.milliseconds, into: &$0)
            }
        }
        if !client.isAbsent { try host(message.text(client)) }
        wasGreeted = true
        let ping = shard.limits.pingInterval.map { Int($0.nanoseconds / 1_000_000) }
        link.send {
            EnvelopeWriter.hello(
                session: shard.answers.names.text(name), terms: shard.limits.terms(for: limits),
                pingIntervalMilliseconds: ping,
                into: &$0)
        }
    }

    private func look() { isGuarded = shard.isGuarded || isRevoked || relays != nil }

    // MARK: Messages out

    var isWritable: Bool { link.isWritable }

    func inOneWrite(_ body: () -> Void) { link.inOneWrite(body) }

    /// Answers with the result that lies in `result`; nil for a method without one.
    @inline(__always)
    func succeed(_ callID: UnsafeRawBufferPointer, _ result: UnsafeRawBufferPointer?) {
        if let result {
            let count = EnvelopeWriter.responseCount(callID: callID.count, result: result.count)
            guard count <= largestMessage else { return fail(callID, tooLarge("the result", count)) }
        }
        if shard.states.isMarked { catchUpStreams() }
        link.send { EnvelopeWriter.response(callID: callID, result: result, into: &$0) }
    }

    /// What is said instead of a message that the client would end the connection for.
    @inline(never)
    func tooLarge(_ what: String, _ count: Int) -> TrebuchetError {
        let limit =
            largestMessage < shard.limits.clientMessageSize
            ? "the client takes \(largestMessage) (its TrebuchetClient.Options.messageSize)"
            : "clients are sent \(largestMessage) at most (ServerLimits.clientMessageSize at the server, "
                + "TrebuchetClient.Options.messageSize at the client)"
        return TrebuchetError(.internal, "\(what) makes a message of \(count) bytes, and \(limit)")
    }

    func fail(_ callID: [UInt8], _ error: any Error) {
        callID.withUnsafeBytes { fail($0, error) }
    }

    func fail(_ callID: UnsafeRawBufferPointer, _ error: any Error) { fail(callID, error, nil) }

    /// Sends the states that a call changed before its answer: a caller reads its own writes.
    func catchUpStreams() {
        shard.states.callDidEnd()
        if upstream != nil { shard.catchUpFeeds() }
        switch streams.changed(in: &shard.states.changes) {
        case .none: return
        case .perhapsAll: for subscription in streams.values { catchUp(subscription) }
        case .these(let changed): for subscription in changed { catchUp(subscription) }
        }
    }

    private func catchUp(_ subscription: StreamSubscription) {
        // One before it may have ended it.
        guard subscription.place >= 0 else { return }
        if shard.states.isHome(of: subscription.broadcaster.hub) { subscription.broadcaster.hub.publish() }
        subscription.broadcaster.catchUp(subscription)
    }

    /// Ends the stream instead when its client does not take so much at once.
    func sendStreamData(_ subscription: StreamSubscription, suffix: SharedBytes) {
        // A message before it may have ended it.
        guard subscription.place >= 0 else { return }
        let streamID = subscription.streamID
        let count = StreamDataParts.prefixCount + streamID.count + suffix.count
        guard count <= largestMessage else {
            return endStream(subscription, reason: .error, error: tooLarge("a value of the stream", count))
        }
        link.send(shared: suffix, headCount: StreamDataParts.prefixCount + streamID.count) {
            StreamDataParts.appendPrefix(into: &$0)
            $0.append(streamID)
        }
    }

    /// A state could not be sent because the client reads too slowly.
    func fellBehind(_ subscription: StreamSubscription) { isBehind = true }

    func linkDidBecomeWritable() {
        hosting?.linkDidBecomeWritable()
        relays?.linkDidBecomeWritable()
        for crossing in crossings { crossing.take() }
        guard isBehind else { return }
        isBehind = false
        for subscription in streams.values { subscription.broadcaster.catchUp(subscription) }
    }

    // MARK: The end

    /// Tells the client to go to another server, and ends the streams.
    func drain(reconnectAfterMilliseconds: Int) {
        guard !isDraining else { return }
        departure = .told
        link.send {
            EnvelopeWriter.goAway(
                reason: "draining", reconnectAfterMilliseconds: reconnectAfterMilliseconds, into: &$0)
        }
        link.askWhetherHeard()
        leaveStreams()
    }

    /// The pong behind `goAway` has arrived, and so has all that the client sent before it.
    func linkDidHear() {
        guard departure == .told else { return }
        // The client's node sends refused calls to the next owner.
        guard upstream == nil else { return departure = .dismissed }
        departure = .heard
        shard.lastLateMessage = shard.reactor.now
    }

    /// Refuses all calls that come from now on.
    func dismiss() { departure = .dismissed }

    /// Handles a call on a draining connection: makes it until the connection is dismissed.
    @inline(never)
    private func receiveLate(_ message: borrowing Message) {
        guard departure == .dismissed else {
            shard.lastLateMessage = shard.reactor.now
            return message.kind == .invocation ? invoke(message) : receiveRepeat(message)
        }
        if let upstream { return upstream.send(.refused, Array(message.callID)) }
        fail(message, TrebuchetError(.unavailable, "the server is shutting down"))
    }

    func close(_ code: WebSocketCloseCode, reason: String) { link.close(code, reason: reason) }

    func linkDidClose() { linkDidClose(.lost) }

    /// The connection is gone: nothing of it stays with any actor.
    func linkDidClose(_ why: ServerEvent.Closing) {
        guard isOpen else { return }
        noteQueued()
        isOpen = false
        didClose(why)
        let ended = running.values
        running = [:]
        for call in ended {
            didAbandon(call)
            leave(call)
            call.abandon()
        }
        // Calls whose answers are kept go on with this connection, and must not reach what carried it.
        link = ClosedLink(host: link.host)
        hosting?.linkDidClose()
        relays?.close()
        relays = nil
        abandonCrossing()
        if remembers { shard.answers.close(name) }
        let subscriptions = streams.values
        streams = ConnectionStreams()
        permitted = [:]
        for subscription in subscriptions {
            shard.counts.count(.streamsEnded)
            didEnd(subscription, "connectionClosed")
            subscription.broadcaster.remove(subscription, isLost: true)
            giveBackStream(isFiltered: subscription.isFiltered)
        }
        seat?.stake?.giveBack()
        shard.remove(self)
        caller?.connection.didClose()
    }
}
