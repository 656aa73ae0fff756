internal import Platform
internal import Trebuchet

/// The ban list: members that were removed from a room and may not join it for a time. Pure: times are nanoseconds.
struct RoomBanList {
    enum Person: Hashable {
        case principal(ByteText)
        case connection(CallerConnection)

        /// Returns the principal and the connection of a client; none for one that has disconnected and was never signed in.
        static func all(_ principal: String?, _ connection: CallerConnection?) -> [Person] {
            [principal.map { .principal(ByteText($0)) }, connection.map { .connection($0) }].compactMap { $0 }
        }
    }

    private struct BanIndex: Hashable {
        let person: Person
        let room: ByteText
    }

    /// The maximum number of bans. At the limit, expired bans are removed, then those that expire first.
    static let most = 10_000

    private var ends: [BanIndex: UInt64] = [:]

    var isEmpty: Bool { ends.isEmpty }
    var count: Int { ends.count }

    mutating func addBan(_ person: Person, of room: String, until end: UInt64, at now: UInt64) {
        if ends.count >= Self.most {
            ends = ends.filter { $0.value > now }
            for (place, _) in ends.sorted(by: { $0.value < $1.value }).prefix(max(0, ends.count - Self.most * 9 / 10)) {
                ends[place] = nil
            }
        }
        ends[BanIndex(person: person, room: ByteText(room))] = end
    }

    func isBanned(_ person: Person, of room: String, at now: UInt64) -> Bool {
        timeLeft(person, of: room, at: now) != nil
    }

    /// Returns the rest of a ban in nanoseconds; nil without a ban.
    func timeLeft(_ person: Person, of room: String, at now: UInt64) -> UInt64? {
        ends[BanIndex(person: person, room: ByteText(room))].flatMap { now < $0 ? $0 - now : nil }
    }
}
