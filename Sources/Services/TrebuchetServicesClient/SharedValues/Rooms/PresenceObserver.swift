internal import SharedState
internal import Synchronization

/// Renders a room into a `RoomPresence`.
final class PresenceObserver<Presence: Codable & Sendable & Equatable>: RoomObserver {
    private struct KnownState {
        let member: Roster.Member
        /// Nil when the presence is of another type.
        let peer: Peer<Presence>?
    }

    private let subscriber: SharedSubscriber<RoomPresence<Presence>>
    private let decoder: RoomDecoder<Presence>
    private let known = Mutex<[String: KnownState]>([:])

    init(_ decoder: RoomDecoder<Presence>, _ subscriber: SharedSubscriber<RoomPresence<Presence>>) {
        self.decoder = decoder
        self.subscriber = subscriber
    }

    func applyStatus(_ status: RoomStatus) {
        subscriber.update { presence in
            presence.isConnected = status.isJoined
            presence.isLoading = !status.hasRoster && status.error == nil
            presence.error = status.error
        }
    }

    func applyRoster(_ roster: Roster, without own: Set<String>) {
        let peers = known.withLock { known in
            var next: [String: KnownState] = [:]
            for member in roster.members where !own.contains(member.id) {
                // Only changed presences are decoded.
                if let before = known[member.id], before.member == member {
                    next[member.id] = before
                } else {
                    // A member that only uses topics has an empty presence.
                    let (value, isEmpty) = (member.data.value, member.data.object?.isEmpty == true)
                    let data =
                        isEmpty ? try? value.decode(Presence.self) : decoder.decode(value, from: member.id)
                    let peer = data.map { Peer(id: member.id, data: $0, principal: member.principal) }
                    next[member.id] = KnownState(member: member, peer: peer)
                }
            }
            known = next
            return roster.members.compactMap { next[$0.id]?.peer }
        }
        subscriber.update { $0.peers = IdentifiedArrayOf(uniqueElements: peers) }
    }
}
