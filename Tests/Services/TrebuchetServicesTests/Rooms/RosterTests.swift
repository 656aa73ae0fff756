import Bytes
import Deltas
import Testing
import Trebuchet
import TrebuchetWire

@testable import TrebuchetServices

@Suite struct RosterTests {
    private func json(_ text: String) throws -> StoredJSON { try StoredJSON(json: Array(text.utf8)) }

    private func patch(_ changes: StateChanges?) throws -> String {
        var buffer = ByteBuffer()
        try #require(changes).write(into: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    @Test("each change is sent as such, and an observer ends with the whole roster")
    func changes() throws {
        var roster = Roster()
        roster.set(try json(#"{"name":"Ada","at":{"x":1,"y":2},"old":1}"#), of: "a", principal: "u")
        roster.set(try json(#"{"name":"Bob"}"#), of: "b")
        var observer = try Roster(json: roster.json())
        #expect(observer == roster)
        _ = roster.takeChanges()
        roster.set(try json(#"{"name":"Ada","at":{"x":1,"y":3},"new":[null]}"#), of: "a", principal: "u")
        roster.set(nil, of: "b")
        roster.set(.integer(5), of: "c")
        let taken = roster.takeChanges()
        let changes = try #require(taken)
        #expect(
            try patch(changes)
                == #"[{"op":"remove","path":"/members/1/data/old"},{"op":"replace","path":"/members/1/data/at/y","value":3},"#
                + #"{"op":"add","path":"/members/1/data/new","value":[null]},{"op":"remove","path":"/members/2"},"#
                + #"{"op":"add","path":"/members/3","value":{"id":"c","data":5}}]"#)
        try observer.apply(changes)
        #expect(observer == roster)
        #expect(observer.members.map(\.id) == ["a", "c"])
        #expect(observer["a"] == roster["a"])
        #expect(try patch(roster.takeChanges()) == "[]")
        #expect(try Roster(json: observer.json()) == roster)
    }

    @Test("a member whose user has become known, or who joins and leaves unobserved, is sent correctly")
    func identity() throws {
        var roster = Roster()
        roster.set(.integer(1), of: "a")
        var observer = try Roster(json: roster.json())
        _ = roster.takeChanges()
        roster.set(.integer(1), of: "a", principal: "u")
        roster.set(.integer(2), of: "b")
        roster.set(nil, of: "b")
        let taken = roster.takeChanges()
        try observer.apply(try #require(taken))
        #expect(observer == roster)
        #expect(observer.members.map(\.principal) == ["u"])
        // Without readers, unsent changes take no memory.
        for number in 0..<1_000 {
            roster.set(.integer(1), of: "\(number)")
            roster.set(nil, of: "\(number)")
            roster.set(.integer(Int64(number)), of: "a", principal: number % 2 == 0 ? "u" : "v")
        }
        let rest = roster.takeChanges()
        let later = try #require(rest)
        #expect(later.operations.count { _ in true } == 2)
        try observer.apply(later)
        #expect(observer == roster)
    }

    @Test(
        "changes that do not fit a roster are refused",
        arguments: [
            #"[{"op":"add","path":"/x","value":1}]"#, #"[{"op":"replace","path":"/members/9/data","value":1}]"#,
            #"[{"op":"remove","path":"/members/1/data/none"}]"#,
            #"[{"op":"add","path":"/members/2","value":{"id":"x"}}]"#,
            #"[{"op":"remove","path":""}]"#, #"[{"op":"add","path":"/members/1/data/a/b","value":1}]"#,
        ])
    func refused(patch: String) throws {
        var roster = Roster()
        roster.set(try json(#"{"a":1}"#), of: "a")
        let before = roster
        #expect(throws: (any Error).self) {
            try Array(patch.utf8).withUnsafeBytes { try roster.apply(StateChanges(patch: $0)) }
        }
        #expect(roster == before)
    }

    @Test("changes of members within the interval are sent together; all presences together are limited")
    func batches() throws {
        var roster = Roster()
        var batch = PresenceBatch(limit: 1_000, interval: 50)
        batch.setPresence(.integer(1), of: "a", principal: nil)
        #expect(batch.timeToWait(at: 1_000) == 0)
        batch.applyChanges(to: &roster, at: 1_000)
        batch.setPresence(.integer(2), of: "a", principal: nil)
        #expect(batch.timeToWait(at: 1_010) == 40)
        batch.setPresence(.integer(3), of: "b", principal: nil)
        #expect(batch.timeToWait(at: 1_020) == nil)
        batch.setPresence(.integer(4), of: "a", principal: nil)
        #expect(batch.newestPresence(of: "a", in: roster) == .integer(4))
        #expect(roster["a"] == .integer(1))
        batch.applyChanges(to: &roster, at: 1_050)
        #expect(roster["a"] == .integer(4))
        #expect(roster["b"] == .integer(3))
        #expect(throws: RoomError.roomTooLarge(limit: 1_000)) {
            try batch.check(.string(String(repeating: "x", count: 300)), of: nil)
        }
        try batch.check(.string(String(repeating: "x", count: 200)), of: nil)
        try batch.check(.string(String(repeating: "x", count: 300)), of: "a")
        batch.setPresence(nil, of: "a", principal: nil)
        try batch.check(.string(String(repeating: "x", count: 300)), of: nil)
        batch.applyChanges(to: &roster, at: 2_000)
        #expect(roster.members.map(\.id) == ["b"])
    }

    @Test("there is no change to send when all presences are as before")
    func nothingToTell() {
        var batch = PresenceBatch(limit: 10_000, interval: 50)
        var roster = Roster()
        batch.setPresence(.integer(1), of: "a", principal: nil)
        var hasChanges = [batch.hasChanges(to: roster, at: 1_000)]
        batch.applyChanges(to: &roster, at: 1_000)
        batch.setPresence(.integer(2), of: "a", principal: nil)
        batch.setPresence(.integer(1), of: "a", principal: nil)
        batch.setPresence(nil, of: "b", principal: nil)
        var waits = [batch.timeToWait(at: 1_010), batch.timeToWait(at: 1_010)]
        hasChanges.append(batch.hasChanges(to: roster, at: 1_050))
        batch.setPresence(.integer(1), of: "a", principal: "ada")
        waits.append(batch.timeToWait(at: 1_060))
        #expect(waits == [40, nil, 40], "only the first caller after a change has to wait")
        hasChanges.append(batch.hasChanges(to: roster, at: 1_100))
        #expect(hasChanges == [true, false, true], "in the end the member's user has changed")
    }

    @Test("a principal and a host have a part of the bytes of a roster, and leave the rest to others")
    func quotas() throws {
        var batch = PresenceBatch(limit: 4_000, interval: 50, perPrincipal: 1_000, perHost: 2_000)
        let presence = StoredJSON.string(String(repeating: "x", count: 742))
        #expect(PresenceBatch.size(presence) == 1_000)
        let host = CallerHost(address: "192.0.2.1")
        let (ada, bob) = (QuotaHolder(principal: "ada", host: host), QuotaHolder(principal: "bob", host: host))
        try batch.check(presence, of: nil, for: ada)
        batch.setPresence(presence, of: "1", principal: "ada", for: ada)
        #expect(throws: RoomError.roomTooLarge(limit: 1_000)) { try batch.check(.null, of: nil, for: ada) }
        try batch.check(presence, of: "1", for: ada)
        batch.setPresence(presence, of: "2", principal: "bob", for: bob)
        let third = QuotaHolder(principal: nil, host: host)
        #expect(throws: RoomError.roomTooLarge(limit: 2_000)) { try batch.check(.null, of: nil, for: third) }
        try batch.check(presence, of: nil, for: QuotaHolder(principal: "eve", host: CallerHost(address: "192.0.2.2")))
        // A member that becomes another user's takes its bytes along.
        batch.setPresence(presence, of: "2", principal: nil, for: .anonymous)
        try batch.check(presence, of: nil, for: third)
        batch.setPresence(nil, of: "1", principal: nil, for: ada)
        try batch.check(presence, of: nil, for: ada)
    }
}
