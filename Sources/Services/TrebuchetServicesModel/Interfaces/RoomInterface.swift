package import Distributed
package import TrebuchetActors

/// The calls and streams of a room.
@Resolvable
package protocol RoomInterface: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func join(
        presence: EncodedJSON?, token: String?, attempt: String?
    ) async throws(RoomError) -> RoomTicket
    distributed func leave(token: String?) async throws(RoomError)
    distributed func setPresence(_ presence: EncodedJSON?) async throws(RoomError)
    distributed func patchPresence(_ patch: EncodedJSON) async throws(RoomError)
    distributed func publish(topic: String, payload: EncodedJSON) async throws(RoomError) -> Int
    distributed func history(topic: String?, after: Int?, limit: Int?) async throws(RoomError) -> [RoomEvent]
}

extension RoomInterface {
    package nonisolated var observeRoster: StateObservation<Self, Roster> { observation("observeRoster") }
    package nonisolated var observeEvents: EventObservation<Self, RoomEvent> { events("observeEvents") }
}

/// A reference to a room of a server.
package typealias RemoteRoom = $RoomInterface

/// The calls of a list of rooms.
@Resolvable
package protocol RoomListInterface: DistributedActor where ActorSystem == TrebuchetActorSystem {
    distributed func list(after: String?, limit: Int?) async throws(RoomError) -> [RoomSummary]
}

/// A reference to a list of rooms of a server.
package typealias RemoteRoomList = $RoomListInterface
