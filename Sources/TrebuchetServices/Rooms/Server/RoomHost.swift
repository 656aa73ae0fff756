internal import Platform
internal import Synchronization
public import Trebuchet

/// Hosts the rooms of a server, each under `rooms/<type>-<id>`, made when somebody first calls it and gone with its last
/// member.
public final class RoomHost: Sendable {
    /// The name of the service, and the beginning of its rooms' names.
    public static let name = "rooms"

    private struct Entry {
        weak var room: Room?
        var members = 0
    }

    private struct Contents {
        var rules: any RoomRules
        /// By the names of their actors.
        var rooms: [ByteText: Entry] = [:]
        /// Of those that somebody is in, by their bytes: a page of a list is looked up, and not sorted.
        var listed = RoomNames()
        var keptOut = KeptOut()
        /// Of rooms that somebody is in.
        var shares: HolderShares
    }

    /// Those that it was exposed with; rules may give a room fewer or more members.
    public let limits: RoomLimits
    private weak let server: TrebuchetServer?
    private let guests = Visitors<RoomGuest>()
    private let contents: Mutex<Contents>

    private init(_ server: TrebuchetServer, _ rules: any RoomRules, _ limits: RoomLimits) {
        self.server = server
        self.limits = limits
        contents = Mutex(
            Contents(
                rules: rules, shares: HolderShares(perPrincipal: limits.roomsPerPrincipal, perHost: limits.roomsPerHost)
            ))
    }

    /// Makes a server host rooms. Its access policy must identify callers: else every join is refused with
    /// `RoomError.unknownCaller`.
    ///
    /// - Parameter rules: who may join and list rooms. Default: everybody joins every room, and nobody lists them.
    @discardableResult
    public static func expose(
        on server: TrebuchetServer, rules: any RoomRules = OpenRooms(), limits: RoomLimits = RoomLimits()
    ) -> RoomHost {
        let host = RoomHost(server, rules, limits)
        let system = server.actorSystem
        server.expose(Room.self, as: "\(name)/*") { try host.makeRoom($0, in: system) }
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
    public var roomCount: Int { contents.withLock { $0.rooms.count } }

    /// `chat-lobby` of `rooms/chat-lobby`.
    func shortName(_ name: String) -> String { name.dropFirst(bytes: Self.name.utf8.count + 1) }

    func room(_ name: String) -> Room? { contents.withLock { $0.rooms[ByteText(name)]?.room } }

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
            guard let before = contents.rooms[name]?.members else { return }
            contents.rooms[name]?.members = members
            if before == 0, members > 0 { contents.listed.insert(name) }
            if before > 0, members == 0 { contents.listed.remove(name) }
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
            let all = "\(Self.name)/"
            let names = contents.listed.page(prefix: all + prefix, after: after.map { all + $0 }, limit: limit)
            return names.map {
                RoomSummary(name: shortName($0.text), members: contents.rooms[$0]?.members ?? 0)
            }
        }
    }

    /// Throws when somebody is in as many rooms as he may be, over all of his connections.
    func checkShare(of holder: Holder) throws(RoomError) {
        if let full = contents.withLock({ $0.shares.exceeded(holder) }) { throw .tooManyRooms(limit: full) }
    }

    /// A session of a room begins, goes to another connection, or ends.
    func count(from before: Holder?, to after: Holder?) {
        guard before != after else { return }
        contents.withLock { contents in
            if let before { contents.shares.release(before) }
            if let after { contents.shares.take(after) }
        }
    }

    private func makeRoom(_ name: String, in system: TrebuchetActorSystem) throws(RoomError) -> Room {
        guard name.utf8.count <= RoomLimits.longestName else { throw .invalidName }
        let isAllowed = contents.withLock { contents in
            guard contents.rooms.count < limits.rooms else { return false }
            contents.rooms[ByteText(name)] = Entry()
            return true
        }
        guard isAllowed else { throw .serverFull(limit: limits.rooms) }
        let room = Room(name: name, host: self, actorSystem: system)
        contents.withLock { $0.rooms[ByteText(name)]?.room = room }
        let time = limits.unjoinedTime
        Task { [weak room] in
            try? await Task.sleep(for: time)
            await room?.whenLocal { $0.closeIfEmpty() }
        }
        return room
    }

    /// Lets a room go that nobody is in, unless somebody comes meanwhile.
    func letGo(_ room: Room, _ name: String) async {
        await server?.letGo(room, named: name, if: { $0.isEmpty }) { room, goes in
            room.didDecide(goes)
            guard goes else { return }
            let closed = self.contents.withLock { contents in
                contents.listed.remove(ByteText(name))
                return contents.rooms.removeValue(forKey: ByteText(name))
            }
            withExtendedLifetime(closed) {}
        }
    }

    /// Who makes the call that runs now.
    func guest() throws(RoomError) -> RoomGuest {
        guard let connection = Caller.current?.connection else { throw .unknownCaller }
        return guests.visitor(connection) {
            RoomGuest(connection, limits: limits)
        } principalChanged: { [weak self] in
            self?.principalChanged(of: $0)
        }
    }

    /// Somebody else is signed in over a connection, or with other roles.
    private func principalChanged(of guest: RoomGuest) {
        for name in guest.followed {
            guard let room = room(name) else { continue }
            Task { await room.whenLocal { $0.rightsChanged(of: guest) } }
        }
    }
}
