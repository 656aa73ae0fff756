import TestSupport
import Testing

@testable import TrebuchetRedis

/// Channels at a real server.
@Suite(.hasRedis, .redisServer, .serialized)
struct RedisChannelTests {
    private let server: RedisServer

    init() throws { server = try #require(SharedRedisServer.current) }

    private func client() throws -> RedisClient {
        let url = try RedisURL(server.url)
        return RedisClient(RedisTarget(url.endpoints[0], as: url))
    }

    private func note(_ journal: Journal, _ prefix: String = "") -> RedisSubscriber {
        { event in
            switch event {
            case .message(let bytes): journal.record(prefix + String(decoding: bytes, as: UTF8.self))
            case .mayHaveMissed: journal.record(prefix + "gap")
            case .ended: journal.record(prefix + "ended")
            }
        }
    }

    @Test("messages arrive in order, between the responses, at all subscribers, until they unsubscribe")
    func order() async throws {
        let client = try client()
        let received = Journal()
        let one = try await client.subscribe(Array("news".utf8), note(received, "1:"))
        let two = try await client.subscribe(Array("news".utf8), note(received, "2:"))
        for index in 0..<50 {
            #expect(try await client.send(RedisCommand("SPUBLISH", ["news", .integer(Int64(index))])).number == 1)
        }
        await received.wait { $0.count == 100 }
        #expect(received.entries.filter { $0.hasPrefix("1:") } == (0..<50).map { "1:\($0)" })
        #expect(received.entries.filter { $0.hasPrefix("2:") } == (0..<50).map { "2:\($0)" })
        two.cancel()
        _ = try await client.send(RedisCommand("SPUBLISH", ["news", "last"]))
        await received.wait(for: "1:last")
        one.cancel()
        #expect(try await client.send(RedisCommand("SPUBLISH", ["news", "nobody"])).number == 0)
        #expect(received.entries.count == 101)
        // Unsubscribed and subscribed in one turn: the responses are distinguished.
        let again = try await client.subscribe(Array("news".utf8), note(received, "3:"))
        _ = try await client.send(RedisCommand("SPUBLISH", ["news", "again"]))
        await received.wait(for: "3:again")
        again.cancel()
    }

    @Test("after a lost connection the client subscribes again and notifies its subscribers")
    func reconnection() async throws {
        let client = try client()
        let received = Journal()
        let subscription = try await client.subscribe(Array("on".utf8), note(received))
        #expect(try await server.cli("CLIENT", "KILL", "TYPE", "pubsub") == "1")
        await received.wait(for: "gap")
        _ = try await client.send(RedisCommand("SPUBLISH", ["on", "after"]))
        await received.wait(for: "after")
        #expect(received.entries == ["gap", "after"])
        subscription.cancel()
    }

    @Test("a channel that the user may not access is refused, and responses stay in order")
    func refused() async throws {
        try await server.cli("ACL", "SETUSER", "deaf", "on", "nopass", "~*", "resetchannels", "+@all")
        let url = try RedisURL("redis://deaf:x@127.0.0.1:\(server.port)")
        let client = RedisClient(RedisTarget(url.endpoints[0], as: url))
        async let before = client.send(RedisCommand("ECHO", ["before"]))
        let error = await #expect(throws: RedisError.self) {
            try await client.subscribe(Array("secret".utf8)) { _ in }
        }
        #expect(error?.description.contains("NOPERM") == true)
        #expect(try await before.text == "before")
        #expect(try await client.send(RedisCommand("ECHO", ["after"])).text == "after")
    }

    @Test("a subscription ends with its client")
    func closing() async throws {
        let client = try client()
        let received = Journal()
        let subscription = try await client.subscribe(Array("end".utf8), note(received))
        client.close()
        await received.wait(for: "ended")
        await #expect(throws: RedisError.closed) { try await client.subscribe(Array("end".utf8)) { _ in } }
        subscription.cancel()
    }
}
