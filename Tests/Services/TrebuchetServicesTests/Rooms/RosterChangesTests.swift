import Bytes
import Deltas
import Foundation
import Testing
import TrebuchetWire

@testable import TrebuchetServices

@Suite("The content of a roster and its changes") struct RosterChangesTests {
    private func patch(_ roster: inout Roster) throws -> String {
        let taken = roster.takeChanges()
        var buffer = ByteBuffer()
        try #require(taken).write(into: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    @Test("members are ordered by their arrival, however many they are")
    func order() throws {
        var roster = Roster()
        for number in 0..<20 { roster.set(.integer(Int64(number)), of: "s\(number)") }
        #expect(roster.members.map(\.id) == (0..<20).map { "s\($0)" })
        roster.set(nil, of: "s3")
        roster.set(nil, of: "nobody")
        roster.set(.integer(7), of: "s3")
        #expect(roster.members.last?.id == "s3")
        #expect(roster["s3"] == .integer(7) && roster["nobody"] == nil)
        let text = String(decoding: try roster.json(), as: UTF8.self)
        #expect(text.hasPrefix(#"{"members":{"1":{"id":"s0","data":0},"2":{"id":"s1","data":1},"#))
        #expect(text.hasSuffix(#","20":{"id":"s19","data":19},"21":{"id":"s3","data":7}}}"#))
        // Numbers continue, also in a decoded copy.
        var read = try Roster(json: Array(text.utf8))
        #expect(read == roster)
        read.set(.null, of: "new")
        #expect(String(decoding: try read.json(), as: UTF8.self).hasSuffix(#""22":{"id":"new","data":null}}}"#))
    }

    @Test("a presence counts as shown only for its user, unless it is empty")
    func shows() {
        var roster = Roster()
        roster.set(.integer(1), of: "a", principal: "ada")
        #expect(roster.hasPresence(.integer(1), of: "a", "ada"))
        #expect(!roster.hasPresence(.integer(2), of: "a", "ada"))
        #expect(!roster.hasPresence(.integer(1), of: "a", nil))
        #expect(!roster.hasPresence(.integer(1), of: "a", "eve"))
        #expect(!roster.hasPresence(nil, of: "a", "ada"))
        #expect(!roster.hasPresence(.integer(1), of: "b", "ada"))
        #expect(roster.hasPresence(nil, of: "b", "ada") && roster.hasPresence(nil, of: "b", nil))
    }

    @Test("a member that changes its presence keeps its number; with another user it gets a new one")
    func numbers() throws {
        var roster = Roster()
        roster.set(.integer(1), of: "a")
        roster.set(.integer(1), of: "b")
        _ = roster.takeChanges()
        roster.set(.integer(2), of: "a")
        #expect(try patch(&roster) == #"[{"op":"replace","path":"/members/1/data","value":2}]"#)
        roster.set(.integer(2), of: "a", principal: "ada")
        #expect(
            try patch(&roster)
                == #"[{"op":"remove","path":"/members/1"},"#
                + #"{"op":"add","path":"/members/3","value":{"id":"a","principal":"ada","data":2}}]"#)
        // A change that is undone before it is sent is no change.
        roster.set(.integer(5), of: "b")
        roster.set(.integer(1), of: "b")
        #expect(try patch(&roster) == "[]")
        roster.set(nil, of: "b")
        #expect(try patch(&roster) == #"[{"op":"remove","path":"/members/2"}]"#)
        #expect(try patch(&roster) == "[]")
    }

    @Test(
        "changed parts of a presence are patched in place",
        arguments: [
            (
                #"{"a":{"b":1,"c":2}}"#, #"{"a":{"b":1,"c":3}}"#,
                #"[{"op":"replace","path":"/members/1/data/a/c","value":3}]"#
            ),
            (#"{"a":{"b":1}}"#, #"{"a":1}"#, #"[{"op":"replace","path":"/members/1/data/a","value":1}]"#),
            (#"{"a":1}"#, #"{"a":{"b":1}}"#, #"[{"op":"replace","path":"/members/1/data/a","value":{"b":1}}]"#),
            (#"{"a":1,"b":2}"#, #"{"b":2}"#, #"[{"op":"remove","path":"/members/1/data/a"}]"#),
            (#"[1]"#, #"[2]"#, #"[{"op":"replace","path":"/members/1/data","value":[2]}]"#),
            (#"{}"#, #"{"x":null}"#, #"[{"op":"add","path":"/members/1/data/x","value":null}]"#),
        ])
    func parts(before: String, after: String, change: String) throws {
        var roster = Roster()
        roster.set(try StoredJSON(json: Array(before.utf8)), of: "a")
        var observer = try Roster(json: roster.json())
        _ = roster.takeChanges()
        roster.set(try StoredJSON(json: Array(after.utf8)), of: "a")
        #expect(try patch(&roster) == change)
        try Array(change.utf8).withUnsafeBytes { try observer.apply(StateChanges(patch: $0)) }
        #expect(observer == roster)
    }

    @Test("the whole roster may be replaced, and a member by its number")
    func replaced() throws {
        var roster = Roster()
        roster.set(.integer(1), of: "a")
        func apply(_ text: String) throws {
            try Array(text.utf8).withUnsafeBytes { try roster.apply(StateChanges(patch: $0)) }
        }
        try apply(#"[{"op":"replace","path":"/members/1","value":{"id":"b","data":2}}]"#)
        #expect(roster["a"] == nil && roster["b"] == .integer(2))
        try apply(#"[{"op":"replace","path":"","value":{"members":{"7":{"id":"c","data":3}},"later":1}}]"#)
        #expect(roster.members.map(\.id) == ["c"])
        try apply(#"[{"op":"remove","path":"/members/7"}]"#)
        #expect(roster.members.isEmpty && roster["c"] == nil)
        #expect(throws: (any Error).self) { try apply(#"[{"op":"add","path":"","value":{"members":{}}}]"#) }
    }

    @Test(
        "an invalid roster is refused",
        arguments: [
            #"{"members":{"x":{"id":"a","data":1}}}"#, #"{"members":{"1":{"id":"a"}}}"#,
            #"{"members":{"1":{"data":1}}}"#,
            #"{"members":{"1":{"id":7,"data":1}}}"#, #"{"members":[]}"#, "[]",
        ])
    func noRoster(text: String) {
        #expect(throws: (any Error).self) { try Roster(json: Array(text.utf8)) }
    }

    @Test("other coders encode a roster as Trebuchet's do")
    func otherCoders() throws {
        var roster = Roster()
        roster.set(.object(["a": .array([.integer(1), .number(2.5)])]), of: "a", principal: "ada")
        let data = try JSONEncoder().encode(roster)
        #expect(try JSONDecoder().decode(Roster.self, from: data) == roster)
        #expect(try JSONValue(json: Array(data)) == JSONValue(json: roster.json()))
        let event = RoomEvent(number: 3, topic: "t", peer: "p", payload: EncodedJSON(.array([.null])))
        #expect(try JSONDecoder().decode(RoomEvent.self, from: JSONEncoder().encode(event)) == event)
    }

    // MARK: Batches

    @Test("the first change is sent immediately, and later ones at the end of the interval")
    func times() {
        var roster = Roster()
        var batch = PresenceBatch(limit: 10_000, interval: 50)
        func waits(at now: UInt64) -> UInt64? {
            batch.setPresence(.integer(Int64(now)), of: "a", principal: nil)
            return batch.timeToWait(at: now)
        }
        #expect(waits(at: 7) == 0)
        batch.applyChanges(to: &roster, at: 7)
        #expect(waits(at: 56) == 1)
        // The caller has been given a time to wait.
        #expect(waits(at: 57) == nil)
        batch.applyChanges(to: &roster, at: 57)
        #expect(roster["a"] == .integer(57))
        #expect(waits(at: 107) == 0)
        #expect(waits(at: 106) == 1)
    }

    @Test("all presences together are limited, a member counts 256 bytes more, and a smaller presence is never refused")
    func bounds() throws {
        var batch = PresenceBatch(limit: 1_000, interval: 50)
        func text(_ bytes: Int) -> StoredJSON { .string(String(repeating: "x", count: bytes - 2)) }
        batch.setPresence(text(244), of: "a", principal: nil)
        try batch.check(text(244), of: nil)
        #expect(throws: RoomError.roomTooLarge(limit: 1_000)) { try batch.check(text(245), of: nil) }
        try batch.check(text(744), of: "a")
        #expect(throws: RoomError.roomTooLarge(limit: 1_000)) { try batch.check(text(745), of: "a") }
        // Even over the limit, a member may keep the size of its presence or reduce it.
        batch.setPresence(text(1_000), of: "b", principal: nil)
        try batch.check(text(244), of: "a")
        #expect(throws: RoomError.self) { try batch.check(text(245), of: "a") }
        try batch.check(nil, of: "c")
        batch.setPresence(nil, of: "b", principal: nil)
        try batch.check(text(244), of: "c")
        #expect(throws: RoomError.self) { try batch.check(text(245), of: "c") }
    }

    @Test("a member's pending presence is its next one, also when it is empty")
    func wanted() {
        var roster = Roster()
        var batch = PresenceBatch(limit: 10_000, interval: 50)
        #expect(batch.newestPresence(of: "a", in: roster) == nil)
        batch.setPresence(.integer(1), of: "a", principal: "ada")
        #expect(batch.newestPresence(of: "a", in: roster) == .integer(1))
        batch.applyChanges(to: &roster, at: 1)
        #expect(batch.newestPresence(of: "a", in: roster) == .integer(1))
        #expect(roster.members.first?.principal == "ada")
        batch.setPresence(nil, of: "a", principal: "ada")
        #expect(batch.newestPresence(of: "a", in: roster) == nil && roster["a"] == .integer(1))
        batch.applyChanges(to: &roster, at: 2)
        #expect(roster.members.isEmpty)
        // Setting a presence again is no change for observers.
        batch.setPresence(.integer(1), of: "a", principal: "ada")
        batch.applyChanges(to: &roster, at: 3)
        _ = roster.takeChanges()
        batch.setPresence(.integer(1), of: "a", principal: "ada")
        batch.applyChanges(to: &roster, at: 4)
        let changes = roster.takeChanges()
        #expect(changes?.operations.contains { _ in true } == false)
    }

    @Test("a sent change is no longer than the presence, however deeply that is nested")
    func nested() throws {
        func presence(_ value: Int) throws -> StoredJSON {
            .object([
                String(repeating: "x", count: 20_000): .object(
                    JSONObject((0..<2_000).map { (key: "\($0)", value: .integer(Int64(value))) }))
            ])
        }
        var roster = Roster()
        roster.set(try presence(1), of: "a")
        var observer = try Roster(json: roster.json())
        _ = roster.takeChanges()
        for value in 2...3 {
            roster.set(try presence(value), of: "a")
            let taken = roster.takeChanges()
            let changes = try #require(taken)
            var buffer = ByteBuffer()
            changes.write(into: &buffer)
            #expect(buffer.count < 40_000)
            try observer.apply(changes)
            #expect(observer == roster)
        }
    }
}
