internal import Platform

/// What a client does next about one room: joins it, tells what its user shows, publishes, leaves. Pure: it is told what
/// happens, and says what to do.
struct RoomPlan {
    enum Step: Equatable {
        case join(presence: JSONValue?, token: String?)
        case set(JSONValue?)
        case patch(JSONValue)
        case publish
        case leave(token: String)
        /// Nothing, until something happens.
        case wait
        /// The room is no longer of interest, and the server knows.
        case end
    }

    /// What the server is known to show of the user.
    private enum Shown: Equatable {
        case unknown
        case known(JSONValue?)
    }

    /// Subscriptions that need the room.
    var users = 0
    /// What the user shows; nil for nothing.
    private(set) var presence: JSONValue?
    private(set) var isConnected = false
    /// Whether a sign-in is under way, or has just ended: `signedIn()` comes.
    var isSigningIn = false
    /// Whether there will be no connection any more.
    private(set) var isClosed = false
    /// Whether the client leaves for good, whoever shows the room.
    private(set) var isLeft = false
    /// Whether the present connection has its stay.
    private(set) var isJoined = false
    private(set) var ticket: RoomTicket?
    /// Shown with each join, so that one whose answer was lost makes no second stay.
    private(set) var attempt: String?
    /// What is wrong, until it works again.
    private(set) var error: (any Error)?
    private var shown = Shown.unknown
    /// A presence that the server does not take.
    private var refused: JSONValue?
    /// After a failure, until `retry()`.
    private var isHeldBack = false
    private var failures = 0
    /// How often the room was lost in a row, before anything was heard of it.
    private var losses = 0
    private var hasMoved = false
    private var didJustShow = false

    init(attempt: String? = nil) { self.attempt = attempt }

    /// - Parameter hasEvents: whether there is something to publish.
    func next(hasEvents: Bool) -> Step {
        guard users > 0, !isLeft else {
            guard let token = ticket?.token, !isClosed else { return .end }
            return isConnected && !isHeldBack ? .leave(token: token) : .wait
        }
        guard isConnected, !isHeldBack else { return .wait }
        guard isJoined else { return .join(presence: acceptablePresence, token: ticket?.token) }
        // In turns: neither holds up the other.
        if hasEvents, didJustShow || !hasPresenceToShow { return .publish }
        guard hasPresenceToShow else { return .wait }
        if case .known(let old?) = shown, let patch = presence.flatMap({ old.mergePatch(to: $0) }) {
            return .patch(patch)
        }
        return .set(presence)
    }

    private var hasPresenceToShow: Bool {
        shown != .known(presence) && (presence == nil || presence != refused)
    }

    /// A presence that is refused keeps nobody out of the room.
    private var acceptablePresence: JSONValue? { presence == refused ? nil : presence }

    /// Whether a presence has come to its end: it is shown, or refused.
    func isSettled(_ presence: JSONValue?) -> Bool { shown == .known(presence) && isJoined }

    /// What was refused is tried once more when it is to be shown again: whoever asks for that waits for an answer.
    mutating func show(_ presence: JSONValue?) {
        if presence == refused { refused = nil }
        self.presence = presence
    }

    // MARK: The connection

    /// There is a connection, perhaps a new one: the room is to be joined over it.
    mutating func connected() {
        isConnected = true
        isJoined = false
        isHeldBack = false
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

    mutating func leaveForGood() {
        isLeft = true
        isHeldBack = false
    }

    // MARK: Outcomes

    mutating func joined(_ ticket: RoomTicket, showing presence: JSONValue?) {
        self.ticket = ticket
        isJoined = true
        succeeded()
        shown = .known(presence)
        didJustShow = true
    }

    mutating func showed(_ presence: JSONValue?) {
        shown = .known(presence)
        didJustShow = true
        succeeded()
    }

    mutating func published() { didJustShow = false }

    mutating func left() {
        ticket = nil
        isJoined = false
        shown = .unknown
    }

    private mutating func succeeded() {
        failures = 0
        // Joining does, and what there is to see is refused: that is what is wrong.
        if losses < 2 { error = nil }
        if let refused, refused != presence { self.refused = nil }
    }

    /// A join, or telling a presence, has failed. Returns how long to wait before it is tried again.
    mutating func failed(_ step: Step, with error: any Error) -> Duration? {
        failures += 1
        let problem = error as? RoomError
        switch (step, problem) {
        case (.leave, _) where problem != nil:
            // The stay is not there any more, which is what was wanted.
            left()
            return nil
        case (_, .unknownToken?):
            ticket = nil
            isJoined = false
        case (_, .notSignedIn?) where failures < 4:
            // Signing in may take a moment longer than the connection.
            return holdBack(Self.delay(after: failures))
        case (_, .notYours?), (_, .notSignedIn?):
            // Somebody else has signed in, or nobody, and joins as such.
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
            return holdBack(.milliseconds(max(milliseconds, 100)))
        case (_, let problem?) where problem.isAboutPresence:
            refused = presence
            self.error = error
            return nil
        case (.join, .forbidden?) where isSigningIn:
            // Who is somebody may be let in: that is no failure yet.
            isHeldBack = true
            return nil
        case (_, .rateLimited(let milliseconds)?):
            return holdBack(.milliseconds(milliseconds))
        default:
            // What the server has seen of it is not known.
            if case .join = step { isJoined = false } else { shown = .unknown }
            self.error = error
        }
        // The first time at once: the connection was another one, or the room was just made anew.
        return failures == 1 && problem != nil && self.error == nil ? nil : holdBack(Self.delay(after: failures))
    }

    /// The room was lost while it was joined.
    mutating func lost(_ error: any Error) -> Duration {
        isJoined = false
        failures += 1
        losses += 1
        self.error = error
        return holdBack(Self.delay(after: max(failures, losses)))
    }

    /// The room does not know of the connection, which it has not lost: it has moved to another node. That is joined at once, the first
    /// time since something was heard of the room, and is no error then.
    mutating func moved(_ error: any Error) -> Duration? {
        guard !hasMoved else { return lost(error) }
        (hasMoved, isJoined) = (true, false)
        return nil
    }

    /// The room has answered a call.
    mutating func answered() { hasMoved = false }

    /// The room shows who is there, or what was published.
    mutating func heard() {
        hasMoved = false
        if losses > 1, isJoined { error = nil }
        losses = 0
    }

    mutating func retry() { isHeldBack = false }

    /// A sign-in has ended, well or not.
    mutating func signedIn() {
        failures = 0
        isHeldBack = false
    }

    private mutating func holdBack(_ delay: Duration) -> Duration {
        isHeldBack = true
        return delay
    }

    /// From a tenth of a second, doubling to ten.
    static func delay(after failures: Int) -> Duration {
        Backoff(first: .milliseconds(100), limit: .seconds(10)).delay(afterFailures: failures)
    }
}
