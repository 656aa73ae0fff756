internal import Platform
internal import Synchronization
public import Trebuchet

/// Hosts the rooms of a server, each under `rooms/<type>-<id>`. A room is activated by its first call and deactivated after its
/// last member.
public final class RoomHost: Sendable {
    /// The name of the service, with which the names of its rooms begin.
    public static let name = ServiceNames.rooms

    private struct Contents {
        var rules: any RoomRules
        /// The number of members of each room that has members.
        var members: [ByteText: Int] = [:]
        /// The sorted names of those rooms, so that a page of a list needs no sorting.
        var listed = RoomNames()
        var banList = RoomBanList()
        /// The activations of rooms that no client has joined.
        var activations: HostRateTable<ActivationOwner>
        /// Quotas of memberships in rooms.
        var quotaUsage: HolderQuotaUsage
    }

    /// The limits from `expose`; rules may change the number of members for a room.
    public let limits: RoomLimits
    private let rooms: ServiceActors<Room>
    private let clients = ServiceConnections<RoomConnectionState>()
    private let contents: Mutex<Contents>
    /// Counts the bytes of presences and events.
    let memory: RoomMemoryLedger

    private init(_ server: TrebuchetServer, _ rules: any RoomRules, _ limits: RoomLimits) {
        self.limits = limits
        rooms = ServiceActors(of: Self.name, at: server, limit: limits.rooms)
        memory = RoomMemoryLedger(limits.memory, in: server.memoryBudget)
        contents = Mutex(
            Contents(
                rules: rules,
                activations: HostRateTable(limits.activationsPerHost, capacity: RoomLimits.activationEntries),
                quotaUsage: HolderQuotaUsage(perPrincipal: limits.roomsPerPrincipal, perHost: limits.roomsPerHost)
            ))
    }

    /// Adds the room service to a server. Its access policy must identify callers; otherwise every join is refused with
    /// `RoomError.unknownCaller`.
    ///
    /// - Parameters:
    ///   - rules: the rules for joining and listing rooms. Default: all callers may join every room, and none may list them.
    ///   - placement: each server has separate rooms, the default, or one node of a cluster has each room for all nodes. In a
    ///     cluster, memberships, presences and the last events are kept in the coordination store for the next owner, unless
    ///     the server has a `store`. All nodes must expose the service with the same arguments, and `limits` apply to each
    ///     node.
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
        server.expose(RoomList.self, as: "\(RoomList.prefix)*", idle: limits.reconnectTime * 6) {
            RoomList($0, host: host, activator: try host.countActivation(), actorSystem: system)
        }
        return host
    }

    /// The current rules.
    var rules: any RoomRules { contents.withLock { $0.rules } }

    /// Replaces the rules, from the next call on. Members of a room stay in it.
    public func replaceRules(_ rules: any RoomRules) {
        let before = contents.withLock { contents in
            defer { contents.rules = rules }
            return contents.rules
        }
        _ = before
    }

    /// The number of active rooms.
    public var roomCount: Int { rooms.count }

    func room(_ name: String) -> Room? { rooms[name] }

    /// Bans a principal and a connection from a room for a time. The connection stays banned when another principal signs in.
    func ban(_ principal: String?, _ connection: CallerConnection?, from room: String, for time: Duration) {
        let now = MonotonicClock.now
        contents.withLock { contents in
            for who in RoomBanList.Person.all(principal, connection) {
                contents.banList.addBan(who, of: room, until: now &+ time.nanoseconds, at: now)
            }
        }
    }

    /// Returns the rest of a ban in milliseconds; nil without a ban.
    func banTimeLeft(_ client: RoomConnectionState, of room: String) -> Int? {
        contents.withLock { contents in
            guard !contents.banList.isEmpty else { return nil }
            let now = MonotonicClock.now
            return RoomBanList.Person.all(client.connection.principal?.id, client.connection)
                .compactMap { contents.banList.timeLeft($0, of: room, at: now) }.max()
                .map { Int($0 / 1_000_000) + 1 }
        }
    }

    /// Updates the number of members that lists show. A room that has ended changes nothing of its successor.
    func didChange(_ room: Room, _ name: String, members: Int) {
        guard rooms.isCurrent(room, name) else { return }
        contents.withLock { contents in
            let name = ByteText(name)
            let before = contents.members.updateValue(members, forKey: name)
            if before == nil, members > 0 { contents.listed.insert(name) }
            guard members == 0 else { return }
            contents.members[name] = nil
            if before != nil { contents.listed.remove(name) }
        }
    }

    /// - Parameter isShown: called for rooms until the page is full.
    func summaries(
        prefix: String, after: String?, limit: Int, _ isShown: (_ room: String) -> Bool = { _ in true }
    ) -> [RoomSummary] {
        var (summaries, last): ([RoomSummary], String?) = ([], after)
        while summaries.count < limit {
            let page = page(prefix: prefix, after: last, limit: RoomList.maximumPageLength)
            summaries += page.filter { isShown($0.name) }.prefix(limit - summaries.count)
            guard page.count == RoomList.maximumPageLength else { break }
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

    /// Throws when the holder is in the maximum number of rooms, over all of its connections.
    func checkQuota(of holder: QuotaHolder) throws(RoomError) {
        if let full = contents.withLock({ $0.quotaUsage.exceeded(holder) }) { throw .tooManyRooms(limit: full) }
    }

    /// Updates the quota when a membership begins, moves to another connection, or ends.
    func count(from before: QuotaHolder?, to after: QuotaHolder?) {
        guard before != after else { return }
        contents.withLock { contents in
            if let before { contents.quotaUsage.release(before) }
            if let after { contents.quotaUsage.reserve(after) }
        }
    }

    private func makeRoom(_ actorName: String, in system: TrebuchetActorSystem) throws -> Room {
        guard actorName.utf8.count <= RoomLimits.maximumNameLength else { throw RoomError.invalidName }
        let name = rooms.name(ofActor: actorName)
        let activator = try countActivation()
        guard rooms.reserve(name) else { throw RoomError.serverFull(limit: limits.rooms) }
        let room = Room(name: name, host: self, activator: activator, actorSystem: system)
        rooms.register(room, as: name, after: limits.unjoinedRoomTime) { $0.closeIfEmpty() }
        return room
    }

    /// Takes the activation of an actor from the rate of the caller. When it is used up, it throws `rateLimited` for that caller only.
    private func countActivation() throws(CallerRefusal) -> ActivationOwner? {
        guard let activator = ActivationOwner.current else { return nil }
        let now = Int64(MonotonicClock.now / 1_000_000)
        let wait = contents.withLock { contents in
            let wait = contents.activations.wait(for: activator, at: now)
            if wait == nil { contents.activations.consume(activator, at: now) }
            return wait
        }
        if let wait { throw CallerRefusal(RoomError.rateLimited(retryAfterMilliseconds: wait)) }
        return activator
    }

    /// Gives an activation back to the rate of its caller, because the actor is used.
    func giveBackActivation(_ activator: ActivationOwner) {
        contents.withLock { $0.activations.giveBack(activator) }
    }

    /// Releases the name of a room that has moved to another node.
    func releaseName(of room: Room, _ name: String) { rooms.releaseName(name, of: room) }

    /// Releases the name of a room whose activation failed.
    func releaseUnusedName(_ name: String) { rooms.releaseUnusedName(name) }

    /// Deactivates an unused room, unless a client joins meanwhile.
    func deactivateRoom(_ room: Room, _ name: String) async { await rooms.deactivateActor(room, name) }

    /// Returns the state of the connection that makes the current call.
    func callingClient() throws(RoomError) -> RoomConnectionState {
        guard let caller = Caller.current else { throw .unknownCaller }
        // A membership belongs to the principal of the connection, and the call to the one with which it arrived.
        guard !caller.hasLeft else { throw .notYours }
        let connection = caller.connection
        return clients.state(of: connection) {
            RoomConnectionState(connection, maximumUses: limits.roomsPerConnection)
        } principalChanged: { client in
            for room in client.registeredActors {
                Task { await room.whenLocal { $0.authorizationDidChange(of: client) } }
            }
        }
    }

    /// Takes calls from the caller's rate; throws `rateLimited` when there are not so many left.
    func consumeRate(_ rate: RoomRate, of client: RoomConnectionState, calls: Int = 1) throws(RoomError) {
        let limit =
            switch rate {
            case .joins: limits.joinsPerConnection
            case .presenceUpdates: limits.presenceUpdatesPerConnection
            case .publishes: limits.publishesPerConnection
            }
        if let wait = client.consume(calls, of: rate, limit) { throw .rateLimited(retryAfterMilliseconds: wait) }
    }
}

/// The state of a connection in the room service: its number of rooms and its rates.
typealias RoomConnectionState = ServiceConnectionState<Room, RoomRate>

/// The rate-limited operations of a connection.
enum RoomRate { case joins, presenceUpdates, publishes }
