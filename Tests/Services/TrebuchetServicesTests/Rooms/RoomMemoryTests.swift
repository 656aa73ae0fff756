import Bytes
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite("Memory of rooms", .timeLimit(.minutes(5))) struct RoomMemoryTests {
    private typealias Charge = RoomMemoryLedger.Charge

    private static let host = CallerHost(address: "192.0.2.1")
    private static let ada = QuotaHolder(principal: "ada", host: host)
    private static let bob = QuotaHolder(principal: "bob", host: host)

    private func limits(_ total: Int) -> RoomLimits {
        var limits = RoomLimits()
        (limits.storedBytes, limits.storedBytesPerPrincipal, limits.storedBytesPerHost) = (total, 100, 150)
        return limits
    }

    @Test("bytes count for their principal, host and server, until they are released or replaced")
    func ledger() throws {
        let server = MemoryBudget(limit: 10_000)
        let ledger = RoomMemoryLedger(limits(1_000).memory, in: server)
        let first = Charge(bytes: 100, holder: Self.ada, client: nil)
        try ledger.replace([], with: first)
        #expect(throws: RoomError.clientTooLarge(limit: 100)) {
            try ledger.replace([], with: Charge(bytes: 1, holder: Self.ada, client: nil))
        }
        #expect(throws: RoomError.clientTooLarge(limit: 150)) {
            try ledger.replace([], with: Charge(bytes: 51, holder: Self.bob, client: nil))
        }
        #expect(ledger.totalBytes == 100 && server.usedBytes == 100 && ledger.bytes(of: Self.ada) == 100)
        let second = Charge(bytes: 50, holder: Self.bob, client: nil)
        try ledger.replace([], with: second)
        // Fewer bytes are never refused, even above a limit.
        ledger.add(Charge(bytes: 500, holder: Self.ada, client: nil))
        let smaller = Charge(bytes: 99, holder: Self.ada, client: nil)
        try ledger.replace([first], with: smaller)
        #expect(throws: RoomError.self) { try ledger.replace([smaller], with: first) }
        #expect(ledger.totalBytes == 649 && server.usedBytes == 649)
        ledger.release([smaller, second, Charge(bytes: 500, holder: Self.ada, client: nil)])
        #expect(ledger.totalBytes == 0 && server.usedBytes == 0)
        #expect(ledger.bytes(of: Self.ada) == 0 && ledger.bytes(of: Self.bob) == 0)
    }

    @Test("all rooms together are limited, and so is the buffered memory of their server", arguments: [true, false])
    func total(byServer: Bool) throws {
        let server = MemoryBudget(limit: byServer ? 90 : 1_000)
        let ledger = RoomMemoryLedger(limits(byServer ? 1_000 : 90).memory, in: server)
        let charge = Charge(bytes: 90, holder: Self.ada, client: nil)
        try ledger.replace([], with: charge)
        #expect(throws: RoomError.serverTooLarge(limit: 90)) {
            try ledger.replace([], with: Charge(bytes: 1, holder: .anonymous, client: nil))
        }
        #expect(throws: RoomError.serverTooLarge(limit: 90)) {
            try ledger.replace([charge], with: Charge(bytes: 91, holder: .anonymous, client: nil))
        }
        try ledger.replace([charge], with: Charge(bytes: 90, holder: .anonymous, client: nil))
        #expect(ledger.totalBytes == 90 && server.usedBytes == 90 && ledger.bytes(of: Self.ada) == 0)
    }

    @Test("a room releases what it has counted when it ends, and its oldest events when newer ones replace them")
    func room() throws {
        let server = MemoryBudget(limit: 10_000)
        let ledger = RoomMemoryLedger(limits(1_000).memory, in: server)
        do {
            let memory = RoomMemory(ledger)
            for number in 0..<5 {
                try memory.appendEvent(
                    Charge(bytes: 30, holder: Self.ada, client: nil), dropping: number < 3 ? 0 : 1)
            }
            #expect(ledger.totalBytes == 90)
            #expect(throws: RoomError.clientTooLarge(limit: 100)) {
                try memory.appendEvent(Charge(bytes: 11, holder: Self.ada, client: nil), dropping: 0)
            }
            memory.addPresence(Charge(bytes: 40, holder: Self.ada, client: nil), of: "a")
            memory.movePresence(of: "a", to: Self.bob)
            #expect(ledger.bytes(of: Self.bob) == 130 && ledger.totalBytes == 130)
            let charge = Charge(bytes: 60, holder: Self.bob, client: nil)
            try memory.exchange(memory.presence(of: "a"), for: charge)
            memory.undo(charge, to: memory.presence(of: "a"))
            memory.removePresence(of: "none")
            #expect(ledger.totalBytes == 130)
        }
        #expect(ledger.totalBytes == 0 && server.usedBytes == 0)
    }

    private func connected(_ environment: RoomTestEnvironment) async throws -> RoomTestClient {
        let guest = environment.guest()
        try await guest.client.connect()
        return guest
    }

    @Test("a connection stores a limited number of bytes, which the room releases with its members and events")
    func connection() async throws {
        var limits = RoomLimits()
        limits.storedBytesPerConnection = 4_000
        limits.reconnectTime = .milliseconds(1)
        try await RoomTestEnvironment.run(limits) { environment in
            let guest = try await connected(environment)
            let text = JSONValue.string(String(repeating: "x", count: 742))
            let (one, two) = (try guest.room("one"), try guest.room("two"))
            _ = try await one.join(presence: text, token: nil, attempt: nil)
            _ = try await two.join(presence: text, token: nil, attempt: nil)
            let memory = environment.host.memory
            #expect(memory.totalBytes == 2_000)
            #expect(environment.server.bufferedBytes >= 2_000)
            try await one.publish(topic: "t", payload: text)
            await #expect(throws: RoomError.clientTooLarge(limit: 4_000)) {
                try await one.publish(topic: "t", payload: text)
            }
            await #expect(throws: RoomError.clientTooLarge(limit: 4_000)) {
                try await two.setPresence(.string(String(repeating: "x", count: 2_000)))
            }
            // Another connection is not affected, and a smaller presence makes room.
            let other = try await connected(environment)
            _ = try await other.room("one").join(presence: text, token: nil, attempt: nil)
            try await two.setPresence(.integer(1))
            try await one.publish(topic: "t", payload: .integer(1))
            #expect(memory.totalBytes == 2 * 1_000 + 257 + 1_001 + 258)
            // The events stay with the room when their publisher leaves.
            try await one.leave(token: nil)
            try await two.leave(token: nil)
            #expect(await eventually { memory.totalBytes == 1_000 + 1_001 + 258 })
            await other.client.close()
            #expect(await eventually { memory.totalBytes == 0 && environment.host.roomCount == 0 })
        }
    }

    @Test("calls to ever new rooms are limited per caller, unless they join")
    func activations() async throws {
        var limits = RoomLimits()
        limits.activationsPerHost = RateLimit(callsPerSecond: 1.0 / 3_600, burst: 3)
        try await RoomTestEnvironment.run(limits) { environment in
            let (guest, other) = (try await connected(environment), try await connected(environment))
            for number in 0..<10 { _ = try await guest.room("\(number)").join(presence: nil, token: nil, attempt: nil) }
            for number in 10..<13 {
                await #expect(throws: RoomError.notJoined) { try await guest.room("\(number)").setPresence(nil) }
            }
            let refused = await #expect(throws: RoomError.self) { try await guest.room("13").setPresence(nil) }
            let wait = if case .rateLimited(let wait)? = refused { wait } else { 0 }
            #expect(wait > 60_000, "\(String(describing: refused))")
            await #expect(throws: RoomError.self) {
                try await guest.room("14").join(presence: nil, token: nil, attempt: nil)
            }
            // Rooms that are active need no activation, and other connections have a rate of their own.
            try await guest.room("0").setPresence(.integer(1))
            _ = try await other.room("14").join(presence: nil, token: nil, attempt: nil)
            _ = try await guest.room("14").join(presence: nil, token: nil, attempt: nil)
        }
    }
}
