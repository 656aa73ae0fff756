internal import Platform
internal import Relays
internal import Synchronization
internal import TrebuchetClient

/// The rooms of a client. Each is joined once, for any number of values that show it.
final class JoinedRooms: Sendable {
    private let client: TrebuchetClient
    private let signIns: StateRelay<SignInCalls>
    private let rooms = Mutex<[ByteText: JoinedRoom]>([:])
    /// The number of rooms, including those whose end the server has not confirmed.
    let count = StateRelay(0)

    init(_ client: TrebuchetClient, _ signIns: StateRelay<SignInCalls>) {
        self.client = client
        self.signIns = signIns
    }

    /// Returns the room when a value shows it.
    func room(_ name: String) -> JoinedRoom? { rooms.withLock { $0[ByteText(name)] } }

    /// Adds a feed to a room, and creates the room when there is none. `JoinedRoom.remove` with the returned number removes the
    /// feed.
    func addObserver(_ feed: any RoomObserver, presence: JSONValue?, to name: String) -> (room: JoinedRoom, number: Int)
    {
        let (room, number, isNew) = rooms.withLock { rooms in
            let known = rooms[ByteText(name)].flatMap { $0.isLeft ? nil : $0 }
            let room = known ?? JoinedRoom(name, client: client, signIns)
            rooms[ByteText(name)] = room
            return (room, room.addObserver(feed, presence: presence), known == nil)
        }
        if isNew {
            count.update { $0 += 1 }
            room.start(in: self)
        }
        return (room, number)
    }

    /// Leaves all rooms, even those that values still show; `count` reaches 0 when the server has confirmed.
    func leaveAll() {
        for room in rooms.withLock({ Array($0.values) }) { room.change { $0.plan.leavePermanently() } }
    }

    /// Removes a room that has ended; returns false when it is in use again.
    func remove(_ room: JoinedRoom) -> Bool {
        let isForgotten = rooms.withLock { rooms in
            guard !room.isUsed else { return false }
            if rooms[ByteText(room.name)] === room { rooms[ByteText(room.name)] = nil }
            return true
        }
        if isForgotten { count.update { $0 -= 1 } }
        return isForgotten
    }
}
