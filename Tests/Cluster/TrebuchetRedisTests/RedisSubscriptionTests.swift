import Bytes
import Glibc
import Networking
import Synchronization
import TestSupport
import Testing
import Transports

@testable import TrebuchetRedis

/// Subscriptions at a server that stops responding, or responds at a critical moment.
@Suite(.hasRedis)
struct RedisSubscriptionTests {
    @Test("subscriptions count as waiting commands, and one over the limit is refused")
    func waiting() async throws {
        let server = try await RedisServer()
        let client = try client(server.url) {
            $0.waitingCommands = 100
            $0.commandTimeout = .seconds(1)
            $0.connectTimeout = .seconds(1)
        }
        // Before there is a connection, and when the server no longer responds.
        server.signal(SIGSTOP)
        let early = await kinds(of: client, "early", 300)
        server.signal(SIGCONT)
        #expect(early == ["unavailable": 100, "overloaded": 200])
        #expect(await eventually { (try? await client.send(RedisCommand("PING"))) != nil })
        server.signal(SIGSTOP)
        let late = await kinds(of: client, "late", 300)
        server.signal(SIGCONT)
        #expect(late == ["unknownOutcome": 100, "overloaded": 200])
        // A second subscriber of the same channel waits too.
        #expect(await eventually { (try? await client.send(RedisCommand("PING"))) != nil })
        server.signal(SIGSTOP)
        let same = await kinds(of: client, "same", 300, isSame: true)
        server.signal(SIGCONT)
        #expect(same == ["unknownOutcome": 100, "overloaded": 200])
        client.close()
        await server.stop()
    }

    @Test("the number of subscriptions is limited, and a cancelled one makes room")
    func limit() async throws {
        let server = try await RedisServer()
        let client = try client(server.url) { $0.subscriptions = 2 }
        let one = try await client.subscribe([1]) { _ in }
        let two = try await client.subscribe([1]) { _ in }
        let error = await #expect(throws: RedisError.self) { try await client.subscribe([2]) { _ in } }
        #expect(error?.kind == "overloaded" && error?.description.contains("RedisSettings.subscriptions") == true)
        two.cancel()
        let three = try await client.subscribe([2]) { _ in }
        client.close()
        _ = (one, three)
        await server.stop()
    }

    /// The responses of a server to SUNSUBSCRIBE when the channel's hash slot has just moved away, or has not.
    @Test(
        "unsubscribing from a channel that moves to another node does not affect other responses",
        arguments: [
            ">3 sunsubscribe one :0", ">3 sunsubscribe one :0 >3 sunsubscribe one :0",
            ">3 sunsubscribe one :0 -MOVED", "-MOVED",
        ])
    func moved(_ answer: String) async throws {
        let server = ScriptedServer(leaving: answer)
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [ReactorGroup.client]) { channel in
            try? channel.start(server)
        }
        let client = try client("redis://127.0.0.1:\(listener.address.port)") { _ in }
        let received = Journal()
        let one = try await client.subscribe(Array("one".utf8)) { _ in received.record("of one") }
        // All in one turn: the server responds to unsubscribe, subscribe and command in this order.
        let outcomes = Journal()
        await client.reactor.perform {
            one.cancel()
            client.send(RedisCommand("ECHO", ["x"])) { outcomes.record("\($0)") }
        }
        let again = try await client.subscribe(Array("one".utf8)) { received.record("one: \($0)") }
        let two = try await client.subscribe(Array("two".utf8)) { received.record("two: \($0)") }
        await outcomes.wait { $0.count == 1 }
        #expect(outcomes.entries == ["\(Result<RESPValue, RedisError>.success(.simple(Array("echo".utf8))))"])
        #expect(try await client.send(RedisCommand("ECHO", ["x"])).isText("echo"))
        #expect(received.entries == [])
        #expect(server.connections.load(ordering: .relaxed) == 1)
        client.close()
        await received.wait { $0.count == 2 }
        _ = (again, two)
        await listener.close()
    }

    private func client(_ text: String, _ change: (inout RedisSettings) -> Void) throws -> RedisClient {
        let url = try RedisURL(text)
        var settings = RedisSettings()
        change(&settings)
        return RedisClient(RedisTarget(url.endpoints[0], as: url), settings: settings)
    }

    /// The outcomes of this number of concurrent subscriptions, which are then cancelled.
    private func kinds(
        of client: RedisClient, _ name: String, _ count: Int, isSame: Bool = false
    ) async -> [String: Int] {
        await withTaskGroup(of: String.self) { group in
            for index in 0..<count {
                group.addTask {
                    do {
                        _ = try await client.subscribe(Array((isSame ? name : "\(name) \(index)").utf8)) { _ in }
                        return "subscribed"
                    } catch {
                        return (error as? RedisError)?.kind ?? "other"
                    }
                }
            }
            var kinds: [String: Int] = [:]
            for await kind in group { kinds[kind, default: 0] += 1 }
            return kinds
        }
    }
}

/// A server whose responses depend only on the command's name; it expects whole commands, as sent in one turn.
private final class ScriptedServer: ByteChannelDelegate, Sendable {
    let connections = Atomic<Int>(0)
    private let leaving: String

    init(leaving: String) { self.leaving = leaving }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        let words = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n").filter { $0.first != "$" }
        var index = 0
        while index < words.count {
            // The first number of each command is its number of words.
            let count = Int(words[index].dropFirst()) ?? 0
            let command = words[(index + 1)...].prefix(count)
            index += 1 + count
            let text: String
            switch command.first {
            case "HELLO":
                connections.wrappingAdd(1, ordering: .relaxed)
                text = "+OK"
            case "SSUBSCRIBE": text = ">3 ssubscribe \(command.last!) :1"
            case "SUNSUBSCRIBE": text = leaving
            case "PING": text = "+PONG"
            default: text = "+echo"
            }
            channel.write { $0.append(utf8: Self.encoded(text)) }
        }
    }

    private static func encoded(_ text: String) -> String {
        text.split(separator: " ").map { word in
            ">:+-".contains(word.first!) ? "\(word)\r\n" : "$\(word.utf8.count)\r\n\(word)\r\n"
        }.joined()
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}
    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
}
