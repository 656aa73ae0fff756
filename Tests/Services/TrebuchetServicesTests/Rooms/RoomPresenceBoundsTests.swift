import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// The cost of presences.
@Suite(.timeLimit(.minutes(5))) struct RoomPresenceBoundsTests {
    /// A room with a permanent member: an empty room ends when a join is refused.
    private func occupiedRoom(_ environment: RoomTestEnvironment) async throws -> Room {
        let guests = [environment.guest(), environment.guest()]
        for guest in guests { try await guest.client.connect() }
        _ = try await guests[0].room().join(presence: nil, token: nil, attempt: nil)
        return try guests[1].room()
    }

    @Test("the members of a presence are limited over all of its objects, however it is sent")
    func presenceMembers() async throws {
        try await RoomTestEnvironment.run { environment in
            let room = try await occupiedRoom(environment)
            func object(_ count: Int) -> JSONValue {
                .object(JSONObject((0..<count).map { (key: "k\($0)", value: .integer(0)) }))
            }
            let refusal = RoomError.invalidValue("the objects of a presence have 4097 members, of at most 4096")
            await #expect(throws: refusal) {
                try await room.join(presence: .array([object(4_000), object(97)]), token: nil, attempt: nil)
            }
            _ = try await room.join(presence: .object(["a": object(4_094)]), token: nil, attempt: nil)
            try await room.patchPresence(.object(["b": .integer(1)]))
            await #expect(throws: refusal) {
                try await room.patchPresence(.object(["a": .object(["x": .null, "y": .string(":")])]))
            }
            await #expect(throws: refusal) { try await room.setPresence(object(4_097)) }
        }
    }

    @Test("updates of large presences count more")
    func presenceCost() async throws {
        var limits = RoomLimits()
        limits.presenceUpdatesPerConnection = RateLimit(callsPerSecond: 0.001, burst: 10)
        try await RoomTestEnvironment.run(limits) { environment in
            let room = try await occupiedRoom(environment)
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
            // Four updates: 24 KiB count as three more.
            let large = JSONObject(["a": .string(String(repeating: "x", count: 24 << 10))])
            try await room.setPresence(.object(large))
            try await room.patchPresence(.object(["b": .integer(1)]))
            let error = await #expect(throws: RoomError.self) {
                try await room.patchPresence(.object(["b": .integer(2)]))
            }
            guard case .rateLimited? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            try await room.setPresence(.null)
        }
    }

    @Test("a member that joins again uses the rate of its presence updates")
    func presenceOfMember() async throws {
        var limits = RoomLimits()
        limits.presenceUpdatesPerConnection = RateLimit(callsPerSecond: 0.001, burst: 10)
        try await RoomTestEnvironment.run(limits) { environment in
            let room = try await occupiedRoom(environment)
            let large = JSONValue.object(["a": .string(String(repeating: "x", count: 24 << 10))])
            _ = try await room.join(presence: large, token: nil, attempt: nil)
            for _ in 0..<2 { _ = try await room.join(presence: large, token: nil, attempt: nil) }
            let error = await #expect(throws: RoomError.self) {
                try await room.join(presence: large, token: nil, attempt: nil)
            }
            guard case .rateLimited? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("the canonical text of a presence counts, not the bytes of the message")
    func canonicalSize() async throws {
        try await RoomTestEnvironment.run { environment in
            let room = try await occupiedRoom(environment)
            let text = "[" + Array(repeating: "1e15", count: 10_000).joined(separator: ",") + "]"
            let presence = Array(text.utf8).withUnsafeBytes { EncodedJSON(canonical: $0) }
            let refusal = RoomError.presenceTooLarge(bytes: 170_001, limit: 64 << 10)
            await #expect(throws: refusal) { try await room.join(presence: presence, token: nil, attempt: nil) }
            _ = try await room.join(presence: nil, token: nil, attempt: nil)
            await #expect(throws: refusal) { try await room.setPresence(presence) }
        }
    }
}
