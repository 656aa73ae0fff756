internal import Platform
internal import Relays
internal import SharedState
internal import Synchronization
internal import TrebuchetClient

/// The client side of a room: one membership, shared by all values that show the room.
///
/// It has two tasks. One calls the server, one step after the other as its `RoomPlan` decides; the other delivers changes to
/// the feeds. Stream readers write into `contents` and wake both.
final class JoinedRoom: Sendable {
    /// A save of a presence that waits for the server's response.
    struct Save {
        let presence: JSONValue?
        let continuation: SaveContinuation
    }

    struct Contents {
        var plan = RoomPlan(attempt: RandomToken.make())
        /// The number of successful joins.
        var joins = 0
        var feeds: [Int: any RoomObserver] = [:]
        var presenceFeeds: Set<Int> = []
        var lastFeed = 0
        var saves: [Save] = []
        var outbox: [Publication] = []
        /// The memberships that this client has had here.
        var ownMemberships = OwnMemberships()
        var roster: Roster?
        /// Counts the received rosters.
        var rosterCount = 0
        var cursor = EventCursor()
        var hasEvents = false
        /// Received events that have not been delivered yet.
        var arrived: [RoomInput] = []
        var rosterReader: Task<Void, Never>?
        var eventReader: Task<Void, Never>?
        var isSweeping = false
        /// The number of ended sign-ins at the last attempt to join.
        var signInsKnown = 0
    }

    enum RoomInput: Equatable {
        case event(RoomEvent)
        case missed(Int)
        /// The room has ended and was created again while the client was away.
        case restarted

        var eventCount: Int {
            switch self {
            case .event: 1
            case .missed(let count): count
            case .restarted: 0
            }
        }
    }

    /// The maximum size of a presence or event in bytes. A message above the server's limit would end the connection, so larger
    /// values are never sent.
    static let largestValue = 512 << 10
    static let maximumOutboxBytes = 256
    /// The maximum number of received events that wait for delivery, before those of another message are added.
    static let maximumArrived = 1_024

    let name: String
    let client: TrebuchetClient
    let contents = Mutex(Contents())
    /// Notifies the tasks; its version increases with each change.
    let changes = StateRelay(())

    /// The sign-ins of the client.
    let signIns: StateRelay<SignInCalls>

    init(_ name: String, client: TrebuchetClient, _ signIns: StateRelay<SignInCalls> = StateRelay(SignInCalls())) {
        self.signIns = signIns
        self.name = name
        self.client = client
    }

    func wake() { changes.update(()) }

    /// Changes the contents and wakes the tasks.
    @discardableResult
    func change<Result: Sendable>(_ body: (inout Contents) -> Result) -> Result {
        let result = contents.withLock { body(&$0) }
        wake()
        return result
    }

    // MARK: Values

    var isUsed: Bool { contents.withLock { $0.plan.users > 0 && !$0.plan.isLeft } }
    var isLeft: Bool { contents.withLock { $0.plan.isLeft } }

    /// Adds a feed and returns its number.
    ///
    /// - Parameter presence: the user's presence, for a feed of presences; nil for feeds of topics.
    func addObserver(_ feed: any RoomObserver, presence: JSONValue?) -> Int {
        change { contents in
            contents.lastFeed += 1
            contents.feeds[contents.lastFeed] = feed
            contents.plan.users += 1
            if let presence {
                contents.presenceFeeds.insert(contents.lastFeed)
                contents.plan.setPresence(presence)
            }
            return contents.lastFeed
        }
    }

    func remove(_ number: Int) {
        let removed = change { contents -> (any RoomObserver)? in
            contents.plan.users -= 1
            if contents.presenceFeeds.remove(number) != nil, contents.presenceFeeds.isEmpty {
                contents.plan.setPresence(nil)
            }
            return contents.feeds.removeValue(forKey: number)
        }
        _ = removed
    }

    /// Sends the current status to every feed, even if it is unchanged.
    func refresh() {
        let (feeds, status) = contents.withLock { (Array($0.feeds.values), $0.status) }
        for feed in feeds { feed.applyStatus(status) }
    }

    /// Sets the user's presence; it is sent once the room is joined.
    func setPresence(_ presence: JSONValue, _ continuation: SaveContinuation) {
        let bytes = presence.byteCount
        guard bytes <= Self.largestValue else {
            return continuation.resume(throwing: RoomError.presenceTooLarge(bytes: bytes, limit: Self.largestValue))
        }
        let isTaken = change { contents in
            guard !contents.plan.isLeft else { return false }
            contents.plan.setPresence(presence)
            contents.saves.append(Save(presence: presence, continuation: continuation))
            return true
        }
        if !isTaken { continuation.resume(throwing: RoomError.left) }
    }

    /// Queues an event behind earlier ones; it waits until the room is joined.
    func publish(_ payload: JSONValue, to topic: String) -> Publication {
        let bytes = payload.byteCount
        guard bytes <= Self.largestValue else {
            return Publication(topic: topic, failed: RoomError.payloadTooLarge(bytes: bytes, limit: Self.largestValue))
        }
        guard !isLeft else { return Publication(topic: topic, failed: RoomError.left) }
        let publication = Publication(topic: topic, payload: payload, within: client.callTimeout)
        let isTaken = change { contents in
            guard contents.outbox.count < Self.maximumOutboxBytes else { return false }
            contents.outbox.append(publication)
            return true
        }
        guard isTaken else {
            return Publication(topic: topic, failed: RoomError.tooManyWaiting(limit: Self.maximumOutboxBytes))
        }
        return publication
    }
}

extension JoinedRoom.Contents {
    var status: RoomStatus {
        RoomStatus(
            isJoined: plan.isJoined, hasRoster: roster != nil, hasEvents: hasEvents,
            error: plan.isLeft ? RoomError.left : plan.error)
    }

    /// Adds received events. At the limit, earlier ones that no feed has received count as missed.
    mutating func addArrived(_ inputs: [JoinedRoom.RoomInput]) {
        if arrived.count >= JoinedRoom.maximumArrived {
            // Clamped, because a server may name any numbers.
            let missed = arrived.reduce(0) { sum, input in
                let (sum, isTooLarge) = sum.addingReportingOverflow(input.eventCount)
                return isTooLarge ? .max : sum
            }
            arrived = arrived.filter { $0 == .restarted }.suffix(1) + [.missed(missed)]
        }
        arrived += inputs
    }

    var wantsRoster: Bool { !presenceFeeds.isEmpty }
    var wantsEvents: Bool { feeds.count > presenceFeeds.count }
}
