internal import Platform
internal import TrebuchetClient

/// Decides the next step of a client for one room: join, set the presence, publish, or leave. Pure: its inputs are method
/// calls, its output is the next step.
struct RoomPlan {
    enum Step: Equatable {
        case join(presence: JSONValue?, token: String?)
        case set(JSONValue?)
        case patch(JSONValue)
        case publish
        case leave(token: String)
        /// Do nothing until the next event.
        case wait
        /// The room is unused, and the server has confirmed that.
        case end
    }

    /// The user's presence at the server, as far as the client knows it.
    private enum PublishedPresence: Equatable {
        case unknown
        case known(JSONValue?)
    }

    /// Subscriptions that use the room.
    var users = 0
    /// The user's presence; nil for none.
    private(set) var presence: JSONValue?
    private(set) var isConnected = false
    /// True while a sign-in is in progress, or has just ended: `signedIn()` follows.
    var isSigningIn = false
    /// True when the client is closed for good.
    private(set) var isClosed = false
    /// True when the client leaves for good, even if values still show the room.
    private(set) var isLeft = false
    /// True when the current connection has the membership.
    private(set) var isJoined = false
    private(set) var ticket: RoomTicket?
    /// A secret that is sent with each join, so that a join after a lost response creates no second membership.
    private(set) var attempt: String?
    /// The current error, until an operation succeeds.
    private(set) var error: (any Error)?
    /// True after a join without a response: the server may have executed it.
    private var hasJoinInDoubt = false
    private var publishedPresence = PublishedPresence.unknown
    /// A presence that the server has refused.
    private var refused: JSONValue?
    /// Set after a failure, until `retry()`.
    private var isBackingOff = false
    private var failures = 0
    /// The number of consecutive losses of the room without a stream value in between.
    private var losses = 0
    private var hasMoved = false
    private var didJustPublish = false

    init(attempt: String? = nil) { self.attempt = attempt }

    /// Returns the next step.
    ///
    /// - Parameter hasEvents: true when events wait to be published.
    func next(hasEvents: Bool) -> Step {
        guard users > 0, !isLeft else {
            // A join without a response may have created a membership, which the secret of the join proves too.
            guard let token = ticket?.token ?? (hasJoinInDoubt ? attempt : nil), !isClosed else { return .end }
            return isConnected && !isBackingOff ? .leave(token: token) : .wait
        }
        guard isConnected, !isBackingOff else { return .wait }
        guard isJoined else { return .join(presence: acceptablePresence, token: ticket?.token) }
        // Alternate, so that neither presences nor events block the other.
        if hasEvents, didJustPublish || !hasUnpublishedPresence { return .publish }
        guard hasUnpublishedPresence else { return .wait }
        if case .known(let old?) = publishedPresence, let patch = presence.flatMap({ old.mergePatch(to: $0) }) {
            return .patch(patch)
        }
        return .set(presence)
    }

    private var hasUnpublishedPresence: Bool {
        publishedPresence != .known(presence) && (presence == nil || presence != refused)
    }

    /// A refused presence must not prevent a join.
    private var acceptablePresence: JSONValue? { presence == refused ? nil : presence }

    /// Returns whether a presence has been stored at the server.
    func isSettled(_ presence: JSONValue?) -> Bool { publishedPresence == .known(presence) && isJoined }

    /// Sets the presence. A refused presence is tried once more when it is set again, because its caller waits for a response.
    mutating func setPresence(_ presence: JSONValue?) {
        if presence == refused { refused = nil }
        self.presence = presence
    }

    // MARK: The connection

    /// A connection exists, perhaps a new one: the room must be joined over it.
    mutating func connected() {
        isConnected = true
        isJoined = false
        isBackingOff = false
    }

    mutating func disconnected(_ error: (any Error)?) {
        isConnected = false
        isJoined = false
        if let error { self.error = error }
    }

    mutating func closed(_ error: any Error) {
        disconnected(error)
        isClosed = true
    }

    mutating func leavePermanently() {
        isLeft = true
        isBackingOff = false
    }

    // MARK: Outcomes

    mutating func joined(_ ticket: RoomTicket, showing presence: JSONValue?) {
        self.ticket = RoomTicket(membershipID: ticket.membershipID, token: ticket.token, events: ticket.events.bounded)
        isJoined = true
        succeeded()
        publishedPresence = .known(presence)
        didJustPublish = true
    }

    mutating func didSetPresence(_ presence: JSONValue?) {
        publishedPresence = .known(presence)
        didJustPublish = true
        succeeded()
    }

    mutating func published() { didJustPublish = false }

    mutating func left() {
        ticket = nil
        hasJoinInDoubt = false
        isJoined = false
        publishedPresence = .unknown
    }

    private mutating func succeeded() {
        failures = 0
        // With repeated losses, joins succeed but the streams are refused; then that error stays.
        if losses < 2 { error = nil }
        if let refused, refused != presence { self.refused = nil }
    }

    /// A join or a presence update has failed. Returns the delay before the next attempt, or nil.
    mutating func failed(_ step: Step, with error: any Error) -> Duration? {
        failures += 1
        let problem = error as? RoomError
        switch (step, problem) {
        case (.leave, .rateLimited(let milliseconds)?): return backOff(.milliseconds(milliseconds))
        case (.leave, _) where problem != nil:
            // The membership does not exist any more, which is the desired state.
            left()
            return nil
        case (_, .unknownToken?):
            ticket = nil
            isJoined = false
        case (_, .notSignedIn?) where failures < 4 || isSigningIn:
            // The sign-in of the connection may take longer than a join.
            return backOff(Self.delay(after: failures))
        case (_, .notYours?), (_, .notSignedIn?):
            // Another principal, or none, is signed in now; the client joins as that one.
            ticket = nil
            attempt = nil
            isJoined = false
        case (_, .notJoined?):
            isJoined = false
        case (_, .roomClosed?):
            ticket = nil
            isJoined = false
        case (_, .kicked(let milliseconds)?):
            ticket = nil
            isJoined = false
            failures = 0
            self.error = error
            return backOff(.milliseconds(max(milliseconds, 100)))
        case (_, let problem?) where problem.isAboutPresence:
            refused = presence
            self.error = error
            return nil
        case (.join, .forbidden?) where isSigningIn:
            // The client may be admitted once the sign-in has ended: this is no failure yet.
            isBackingOff = true
            return nil
        case (_, .rateLimited(let milliseconds)?):
            return backOff(.milliseconds(milliseconds))
        default:
            // The state at the server is unknown.
            if case .join = step {
                isJoined = false
                // Without a connection it was not sent.
                if problem == nil, (error as? TrebuchetError)?.code != .unavailable { hasJoinInDoubt = true }
            } else {
                publishedPresence = .unknown
            }
            self.error = error
        }
        // The first retry is immediate: the connection was another one, or the room has just been activated.
        return failures == 1 && problem != nil && self.error == nil ? nil : backOff(Self.delay(after: failures))
    }

    /// The room was lost while it was joined.
    mutating func lost(_ error: any Error) -> Duration {
        isJoined = false
        failures += 1
        losses += 1
        self.error = error
        return backOff(Self.delay(after: max(failures, losses)))
    }

    /// The room does not know the connection, although that was not lost: the room has moved to another node. The first time
    /// since the last stream value the client joins there at once, without an error.
    mutating func moved(_ error: any Error) -> Duration? {
        guard !hasMoved else { return lost(error) }
        (hasMoved, isJoined) = (true, false)
        return nil
    }

    /// The room has answered a call.
    mutating func answered() { hasMoved = false }

    /// A roster or an event of the room has arrived.
    mutating func recordActivity() {
        hasMoved = false
        if losses > 1, isJoined { error = nil }
        losses = 0
    }

    mutating func retry() { isBackingOff = false }

    /// A sign-in has ended, successfully or not.
    mutating func signedIn() {
        failures = 0
        isBackingOff = false
    }

    private mutating func backOff(_ delay: Duration) -> Duration {
        isBackingOff = true
        return delay
    }

    /// Returns the delay: 100 ms, doubled after each failure up to 10 s.
    static func delay(after failures: Int) -> Duration {
        Backoff(first: .milliseconds(100), limit: .seconds(10)).delay(afterFailures: failures)
    }
}
