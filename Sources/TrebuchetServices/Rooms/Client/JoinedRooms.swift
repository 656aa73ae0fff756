internal import Platform
internal import Relays
internal import Synchronization
internal import Trebuchet

/// The rooms that a client is in: each is joined once, however many values show it.
final class JoinedRooms: Sendable {
    private let client: TrebuchetClient
    private let signIns: StateRelay<SignIns>
    private let rooms = Mutex<[ByteText: JoinedRoom]>([:])
    /// How many there are, those that the server is still to be told to leave too.
    let count = StateRelay(0)

    init(_ client: TrebuchetClient, _ signIns: StateRelay<SignIns>) {
        self.client = client
        self.signIns = signIns
    }

    /// The room, if a value shows it.
    func room(_ name: String) -> JoinedRoom? { rooms.withLock { $0[ByteText(name)] } }

    /// Shows a room in a feed, until the number that is returned is let go of with `JoinedRoom.remove`.
    func add(_ feed: any RoomFeed, presence: JSONValue?, to name: String) -> (room: JoinedRoom, number: Int) {
        let (room, number, isNew) = rooms.withLock { rooms in
            let known = rooms[ByteText(name)].flatMap { $0.isLeft ? nil : $0 }
            let room = known ?? JoinedRoom(name, client: client, signIns)
            rooms[ByteText(name)] = room
            return (room, room.add(feed, presence: presence), known == nil)
        }
        if isNew {
            count.update { $0 += 1 }
            room.start(in: self)
        }
        return (room, number)
    }

    /// Leaves all rooms, whoever shows them; `count` says when the server knows.
    func leaveAll() {
        for room in rooms.withLock({ Array($0.values) }) { room.change { $0.plan.leaveForGood() } }
    }

    /// Forgets a room that has come to its end; false when somebody has begun to use it again.
    func forget(_ room: JoinedRoom) -> Bool {
        let isForgotten = rooms.withLock { rooms in
            guard !room.isUsed else { return false }
            if rooms[ByteText(room.name)] === room { rooms[ByteText(room.name)] = nil }
            return true
        }
        if isForgotten { count.update { $0 -= 1 } }
        return isForgotten
    }
}
