import Bytes
import Glibc
import Networking
import TestCertificates
import TestSupport
import Testing
import Transports

@testable import TrebuchetRedis

/// The client at a real server.
@Suite(.hasRedis, .redisServer, .serialized)
struct RedisClientTests {
    private let server: RedisServer

    init() throws { server = try #require(SharedRedisServer.current) }

    private func client(
        _ url: String? = nil, scripts: [RedisScript] = [], _ change: (inout RedisSettings) -> Void = { _ in }
    ) throws -> RedisClient {
        let url = try RedisURL(url ?? server.url)
        var settings = RedisSettings()
        change(&settings)
        return RedisClient(RedisTarget(url.endpoints[0], as: url), settings: settings, scripts: scripts)
    }

    @Test("a command returns the server's response, whatever bytes it contains")
    func commands() async throws {
        let client = try client()
        let value = Array(0...255 as ClosedRange<UInt8>)
        #expect(try await client.send(RedisCommand("SET", ["all", .bytes(value)])).isText("OK"))
        #expect(try await client.send(RedisCommand("GET", ["all"])) == .bulk(value))
        #expect(try await client.send(RedisCommand("GET", ["none"])) == .null)
        #expect(try await client.send(RedisCommand("HGETALL", ["none"])) == .map([]))
        await #expect(throws: RedisError.reply(RedisErrorReply("ERR value is not an integer or out of range"))) {
            try await client.send(RedisCommand("INCR", ["all"]))
        }
        client.close()
        await #expect(throws: RedisError.closed) { try await client.send(RedisCommand("PING")) }
    }

    @Test("commands of one turn are sent together, and each gets its response")
    func pipelining() async throws {
        let client = try client()
        _ = try await client.send(RedisCommand("PING"))
        let before = try await reads(client)
        let answers = Journal()
        await client.reactor.perform {
            for index in 0..<500 {
                client.send(RedisCommand("ECHO", [.integer(Int64(index))])) { outcome in
                    answers.record((try? outcome.get())?.text ?? "\(outcome)")
                }
            }
        }
        await answers.wait { $0.count == 500 }
        #expect(answers.entries == (0..<500).map(String.init))
        // The server reads 16 KiB at once.
        #expect(try await reads(client) - before < 10)
    }

    private func reads(_ client: RedisClient) async throws -> Int {
        let info = try await client.send(RedisCommand("INFO", ["stats"])).text ?? ""
        let line = info.split(separator: "\r\n").first { $0.hasPrefix("total_reads_processed:") }
        return try #require(line.flatMap { Int($0.split(separator: ":")[1]) })
    }

    @Test("a response after the timeout is discarded, and the next command gets its response")
    func deadline() async throws {
        let client = try client()
        _ = try await client.send(RedisCommand("PING"))
        try await server.cli("CLIENT", "PAUSE", "60000", "WRITE")
        await #expect(throws: RedisError.self) {
            try await client.send(RedisCommand("SET", ["late", "1"]), timeout: .milliseconds(20))
        }
        async let second = client.send(RedisCommand("SET", ["late", "2", "GET"]))
        try await server.cli("CLIENT", "UNPAUSE")
        // The command with the unknown outcome had been executed.
        #expect(try await second == .bulk([UInt8(ascii: "1")]))
    }

    @Test("the client reconnects to a server that no longer responds")
    func silence() async throws {
        let other = try await RedisServer()
        let client = try client(other.url) { $0.commandTimeout = .milliseconds(60) }
        let first = try await client.send(RedisCommand("CLIENT", ["ID"]), timeout: .seconds(20))
        other.signal(SIGSTOP)
        let error = await #expect(throws: RedisError.self) { try await client.send(RedisCommand("PING")) }
        #expect(error?.kind == "unknownOutcome")
        other.signal(SIGCONT)
        #expect(
            await eventually {
                let second = try? await client.send(RedisCommand("CLIENT", ["ID"]), timeout: .seconds(20))
                return second != nil && second != first
            })
        await other.stop()
    }

    @Test("a command over the queue limit, in number or bytes, is refused immediately")
    func limits() async throws {
        let client = try client {
            $0.waitingCommands = 10
            $0.waitingBytes = 1_000
        }
        _ = try await client.send(RedisCommand("PING"))
        let outcomes = Journal()
        await client.reactor.perform {
            for _ in 0..<12 {
                client.send(RedisCommand("PING")) { outcome in
                    if case .failure(let error) = outcome {
                        outcomes.record("\(error)")
                    } else {
                        outcomes.record("done")
                    }
                }
            }
        }
        await outcomes.wait { $0.count == 12 }
        let refused = "10 queued commands for Redis reach the limit RedisSettings.waitingCommands"
        #expect(outcomes.entries == [refused, refused] + [String](repeating: "done", count: 10))
        let large = RedisCommand("ECHO", [.bytes([UInt8](repeating: 0, count: 1_000))])
        let error = await #expect(throws: RedisError.self) { try await client.send(large) }
        #expect(error?.kind == "overloaded")
        #expect(try await client.send(RedisCommand("PING")).isText("PONG"))
    }

    @Test(
        "a command in flight when the connection breaks has an unknown outcome, and the next one uses a new connection")
    func broken() async throws {
        let client = try client()
        let id = try #require(try await client.send(RedisCommand("CLIENT", ["ID"])).number)
        try await server.cli("CLIENT", "PAUSE", "60000", "WRITE")
        async let outcome = client.send(RedisCommand("SET", ["broken", "1"]))
        #expect(await eventually { (try? await server.cli("INFO", "clients").contains("blocked_clients:1")) ?? false })
        try await server.cli("CLIENT", "KILL", "ID", "\(id)")
        try await server.cli("CLIENT", "UNPAUSE")
        do {
            _ = try await outcome
            Issue.record("the command succeeded")
        } catch {
            #expect((error as? RedisError)?.kind == "unknownOutcome")
        }
        #expect(await eventually { (try? await client.send(RedisCommand("PING"))) != nil })
    }

    @Test("a command fails immediately without a server, and succeeds once there is one")
    func unavailable() async throws {
        let port = RedisServer.freePort()
        let client = try client("redis://127.0.0.1:\(port)") { $0.maximumReconnectDelay = .milliseconds(100) }
        let error = await #expect(throws: RedisError.self) { try await client.send(RedisCommand("PING")) }
        #expect(error?.kind == "unavailable")
        let reason = error?.description ?? ""
        #expect(reason.contains("127.0.0.1:\(port)"))
        let late = try await RedisServer(port: port)
        #expect(await eventually { (try? await client.send(RedisCommand("PING"))) != nil })
        await late.stop()
        #expect(await eventually { (try? await client.send(RedisCommand("PING"))) == nil })
    }

    @Test("a script that the server has dropped is loaded again")
    func scripts() async throws {
        let script = RedisScript("return {KEYS[1], ARGV[1]}")
        let client = try client(scripts: [script])
        let expected = RESPValue.array([.bulk([UInt8(ascii: "k")]), .bulk([UInt8(ascii: "7")])])
        #expect(try await client.run(script, keys: [[UInt8(ascii: "k")]], [.integer(7)]) == expected)
        // Each new connection loads the scripts.
        #expect(try await server.cli("SCRIPT", "EXISTS", script.digest) == "1")
        try await server.cli("SCRIPT", "FLUSH")
        #expect(try await client.run(script, keys: [[UInt8(ascii: "k")]], [.integer(7)]) == expected)
    }

    @Test("user, password and database come from the URL, and a rejection does not reveal them")
    func authentication() async throws {
        try await server.cli("ACL", "SETUSER", "ada", "on", ">s3cret@", "~*", "&*", "+@all")
        let client = try client("redis://ada:s3cret%40@127.0.0.1:\(server.port)/5")
        #expect(try await client.send(RedisCommand("ACL", ["WHOAMI"])).text == "ada")
        let list = try await client.send(RedisCommand("CLIENT", ["INFO"])).text ?? ""
        #expect(list.contains(" db=5 ") && list.contains(" name=trebuchet "))
        let wrong = try self.client("redis://ada:s3cretly@127.0.0.1:\(server.port)")
        let error = await #expect(throws: RedisError.self) { try await wrong.send(RedisCommand("PING")) }
        #expect(error?.kind == "unavailable")
        let reason = error?.description ?? ""
        #expect(reason.contains("rejected the user or password") && !reason.contains("s3cret"))
    }

    @Test("rediss uses TLS, with trusted servers only")
    func tls() async throws {
        let port = RedisServer.freePort()
        let secure = try await RedisServer(options: [
            "--tls-port", "\(port)", "--tls-auth-clients", "no",
            "--tls-cert-file", TestCertificate.path("server.pem"), "--tls-key-file", TestCertificate.path("server.key"),
            "--tls-ca-cert-file", TestCertificate.path("ca.pem"),
        ])
        let client = try client("rediss://localhost:\(port)") {
            $0.tls = TLSClientSettings(trust: .file(TestCertificate.path("ca.pem")))
        }
        let value = [UInt8](repeating: 7, count: 300_000)
        #expect(try await client.send(RedisCommand("ECHO", [.bytes(value)])) == .bulk(value))
        let strict = try self.client("rediss://localhost:\(port)")
        let error = await #expect(throws: RedisError.self) { try await strict.send(RedisCommand("PING")) }
        #expect(error?.kind == "unavailable" && error?.description.contains("certificate") == true, "\(error as Any)")
        await secure.stop()
    }

    @Test("a server that speaks another protocol is refused")
    func otherPeer() async throws {
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [ReactorGroup.client]) { channel in
            try? channel.start(WebPage())
        }
        let client = try client("redis://127.0.0.1:\(listener.address.port)")
        let error = await #expect(throws: RedisError.self) { try await client.send(RedisCommand("PING")) }
        #expect(error?.kind == "unavailable")
        let reason = error?.description ?? ""
        #expect(reason.contains("invalid RESP3"))
        await listener.close()
    }

    private final class WebPage: ByteChannelDelegate {
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            channel.write { $0.append("HTTP/1.1 400 Bad Request\r\n\r\n") }
        }
        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }
}
