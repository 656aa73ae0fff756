internal import Platform
internal import Synchronization
public import Trebuchet

/// Hosts the rooms of a server, each under `rooms/<type>-<id>`, made when somebody first calls it and gone with its last
/// member.
public final class RoomHost: Sendable {
    /// The name of the service, and the beginning of its rooms' names.
    public static let name = "rooms"

    private struct Contents {
        var rules: any RoomRules
        /// Of rooms that somebody is in, how many.
        var members: [ByteText: Int] = [:]
        /// The names of those, by their bytes: a page of a list is looked up, and not sorted.
        var listed = RoomNames()
        var keptOut = KeptOut()
        /// Of rooms that somebody is in.
        var shares: HolderShares
    }

    /// Those that it was exposed with; rules may give a room fewer or more members.
    public let limits: RoomLimits
    private let rooms: ServiceParts<Room>
    private let guests = Visitors<RoomGuest>()
    private let contents: Mutex<Contents>

    private init(_ server: TrebuchetServer, _ rules: any RoomRules, _ limits: RoomLimits) {
        self.limits = limits
        rooms = ServiceParts(of: Self.name, at: server, limit: limits.rooms)
        contents = Mutex(
            Contents(
                rules: rules, shares: HolderShares(perPrincipal: limits.roomsPerPrincipal, perHost: limits.roomsPerHost)
            ))
    }

    /// Makes a server host rooms. Its access policy must identify callers: else every join is refused with
    /// `RoomError.unknownCaller`.
    ///
    /// - Parameters:
    ///   - rules: who may join and list rooms. Default: everybody joins every room, and nobody lists them.
    ///   - placement: whether each server has rooms of its own, the default, or one node of a cluster has each room for all. Then stays,
    ///     what they show and the last events are kept at the engine for its next owner, unless the server has a `store`; all nodes
    ///     expose the same, and `limits` count at each node.
    @discardableResult
    public static func expose(
        on server: TrebuchetServer, rules: any RoomRules = OpenRooms(), limits: RoomLimits = RoomLimits(),
        placement: ActorPlacement = .node
    ) -> RoomHost {
        let host = RoomHost(server, rules, limits)
        let system = server.actorSystem
        server.expose(Room.self, as: "\(name)/*", placement: placement) { try host.makeRoom($0, in: system) }
        server.authorize(helpers: RoomList.prefix) {
            ("\(name)/\(RoomList.prefix(ofRoomsIn: $0))", "list(after:limit:)")
        }
        server.expose(RoomList.self, as: "\(RoomList.prefix)*", idle: limits.grace * 6) {
            RoomList($0, host: host, actorSystem: system)
        }
        return host
    }

    /// Those of now.
    var rules: any RoomRules { contents.withLock { $0.rules } }

    /// Puts other rules in force, from the next call on. Who is in a room stays there.
    public func use(_ rules: any RoomRules) {
        let before = contents.withLock { contents in
            defer { contents.rules = rules }
            return contents.rules
        }
        _ = before
    }

    /// Rooms that there are now.
    public var roomCount: Int { rooms.count }

    func room(_ name: String) -> Room? { rooms[name] }

    /// Keeps somebody from joining a room: the principal, or where nobody is signed in the connection.
    func keepOut(_ principal: String?, _ connection: CallerConnection?, of room: String, for time: Duration) {
        guard let who = KeptOut.Person(principal, connection) else { return }
        let now = MonotonicClock.now
        contents.withLock { $0.keptOut.add(who, of: room, until: now &+ time.nanoseconds, at: now) }
    }

    /// For how many more milliseconds somebody may not join a room; nil when that is not so.
    func timeKeptOut(_ guest: RoomGuest, of room: String) -> Int? {
        contents.withLock { contents in
            guard !contents.keptOut.isEmpty, let who = KeptOut.Person(guest.connection.principal?.id, guest.connection)
            else { return nil }
            return contents.keptOut.timeLeft(who, of: room, at: MonotonicClock.now).map { Int($0 / 1_000_000) + 1 }
        }
    }

    func didChange(_ name: String, members: Int) {
        contents.withLock { contents in
            let name = ByteText(name)
            let before = contents.members.updateValue(members, forKey: name)
            if before == nil, members > 0 { contents.listed.insert(name) }
            guard members == 0 else { return }
            contents.members[name] = nil
            if before != nil { contents.listed.remove(name) }
        }
    }

    /// - Parameter isShown: asked for as many as are needed.
    func summaries(
        prefix: String, after: String?, limit: Int, _ isShown: (_ room: String) -> Bool = { _ in true }
    ) -> [RoomSummary] {
        var (summaries, last): ([RoomSummary], String?) = ([], after)
        while summaries.count < limit {
            let page = page(prefix: prefix, after: last, limit: RoomList.longestPage)
            summaries += page.filter { isShown($0.name) }.prefix(limit - summaries.count)
            guard page.count == RoomList.longestPage else { break }
            last = page.last?.name
        }
        return summaries
    }

    private func page(prefix: String, after: String?, limit: Int) -> [RoomSummary] {
        contents.withLock { contents in
            contents.listed.page(prefix: prefix, after: after, limit: limit).map {
                RoomSummary(name: $0.text, members: contents.members[$0] ?? 0)
            }
        }
    }

    /// Throws when somebody is in as many rooms as he may be, over all of his connections.
    func checkShare(of holder: Holder) throws(RoomError) {
        if let full = contents.withLock({ $0.shares.exceeded(holder) }) { throw .tooManyRooms(limit: full) }
    }

    /// A stay of a room begins, goes to another connection, or ends.
    func count(from before: Holder?, to after: Holder?) {
        guard before != after else { return }
        contents.withLock { contents in
            if let before { contents.shares.release(before) }
            if let after { contents.shares.take(after) }
        }
    }

    private func makeRoom(_ actorName: String, in system: TrebuchetActorSystem) throws(RoomError) -> Room {
        guard actorName.utf8.count <= RoomLimits.longestName else { throw .invalidName }
        let name = rooms.name(ofActor: actorName)
        guard rooms.reserve(name) else { throw .serverFull(limit: limits.rooms) }
        let room = Room(name: name, host: self, actorSystem: system)
        rooms.add(room, as: name, after: limits.unjoinedTime) { $0.closeIfEmpty() }
        return room
    }

    /// A room has gone to another node.
    func giveBack(_ name: String) { rooms.giveBack(name) }

    /// Lets a room go that nobody is in, unless somebody comes meanwhile.
    func letGo(_ room: Room, _ name: String) async { await rooms.letGo(room, name) }

    /// Who makes the call that runs now.
    func guest() throws(RoomError) -> RoomGuest {
        guard let connection = Caller.current?.connection else { throw .unknownCaller }
        return guests.visitor(connection) {
            RoomGuest(connection, places: limits.roomsPerConnection)
        } principalChanged: { guest in
            for room in guest.followed { Task { await room.whenLocal { $0.rightsChanged(of: guest) } } }
        }
    }

    /// Takes one of the calls that somebody may make.
    func take(_ rate: RoomRate, of guest: RoomGuest) throws(RoomError) {
        let limit =
            switch rate {
            case .joins: limits.joins
            case .presenceUpdates: limits.presenceUpdates
            case .publishes: limits.publishes
            }
        if let wait = guest.take(of: rate, limit) { throw .rateLimited(retryAfterMilliseconds: wait) }
    }
}

/// A connection as rooms see it: how many it is in, and how fast it may go on.
typealias RoomGuest = Visitor<Room, RoomRate>

/// What a connection may do so often.
enum RoomRate { case joins, presenceUpdates, publishes }
