internal import Synchronization
public import Trebuchet

/// Hosts the rooms of a server, each under `rooms/<type>-<id>`, made when somebody first calls it and gone with its last
/// member.
public final class RoomHost: Sendable {
    /// The name of the service, and the beginning of its rooms' names.
    public static let name = "rooms"

    private struct Contents {
        var rooms = 0
        var guests: [CallerConnection: RoomGuest] = [:]
    }

    public let limits: RoomLimits
    private weak let server: TrebuchetServer?
    private let contents = Mutex(Contents())

    private init(_ server: TrebuchetServer, _ limits: RoomLimits) {
        self.server = server
        self.limits = limits
    }

    /// Makes a server host rooms. Its access policy must identify callers: else every join is refused with
    /// `RoomError.unknownCaller`.
    @discardableResult
    public static func expose(on server: TrebuchetServer, limits: RoomLimits = RoomLimits()) -> RoomHost {
        let host = RoomHost(server, limits)
        let system = server.actorSystem
        server.expose(Room.self, as: "\(name)/*") { try host.makeRoom($0, in: system) }
        return host
    }

    /// Rooms that there are now.
    public var roomCount: Int { contents.withLock { $0.rooms } }

    private func makeRoom(_ name: String, in system: TrebuchetActorSystem) throws(RoomError) -> Room {
        guard name.utf8.count <= RoomLimits.longestName else { throw .invalidName }
        let isAllowed = contents.withLock { contents in
            guard contents.rooms < limits.rooms else { return false }
            contents.rooms += 1
            return true
        }
        guard isAllowed else { throw .serverFull(limit: limits.rooms) }
        let room = Room(name: name, host: self, actorSystem: system)
        let time = limits.unjoinedTime
        Task { [weak room] in
            try? await Task.sleep(for: time)
            await room?.whenLocal { $0.closeIfEmpty() }
        }
        return room
    }

    /// A room has closed, once.
    func didClose(_ name: String) {
        contents.withLock { $0.rooms -= 1 }
        Task { [weak server] in await server?.unexpose(name) }
    }

    /// Who makes the call that runs now.
    func guest() throws(RoomError) -> RoomGuest {
        guard let connection = Caller.current?.connection else { throw .unknownCaller }
        let (guest, isNew) = contents.withLock { contents in
            if let guest = contents.guests[connection] { return (guest, false) }
            let guest = RoomGuest(connection, limits: limits)
            contents.guests[connection] = guest
            return (guest, true)
        }
        if isNew { connection.onClose { [weak self, weak connection] in self?.forget(connection) } }
        return guest
    }

    private func forget(_ connection: CallerConnection?) {
        guard let connection else { return }
        let removed = contents.withLock { $0.guests.removeValue(forKey: connection) }
        _ = removed
    }
}
