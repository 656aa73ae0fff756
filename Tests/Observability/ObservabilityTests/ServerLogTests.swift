import Foundation
import Platform
import Synchronization
import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// The log of a server, in both formats.
@Suite(.timeLimit(.minutes(5))) struct ServerLogTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private let peer = ServerEvent.Peer(
        connection: 7, address: SocketAddress(literal: "192.0.2.1", port: 80), principal: #"ada "the" first"#)

    private var call: ServerEvent.Call {
        ServerEvent.Call(number: 3, peer: peer, actor: "lists/a b", type: "Demo.List", method: "add(_:)")
    }

    @Test("a line has time, level, message and fields, as text and as JSON")
    func formats() throws {
        let record = try #require(LogRecord(.callEnded(call, duration: .milliseconds(1_500), error: .timeout)))
        let time = LogTime.text(seconds: 1_777_636_800, milliseconds: 7)
        #expect(time == "2026-05-01T12:00:00.007Z")
        #expect(
            record.text(at: time)
                == #"2026-05-01T12:00:00.007Z debug call failed call=3 connection=7 address=192.0.2.1:80 "#
                + #"principal="ada \"the\" first" type=Demo.List actor="lists/a b" method=add(_:) seconds=1.5 error=timeout"#
        )
        let object = try JSONSerialization.jsonObject(with: Data(record.json(at: time).utf8)) as? [String: Any]
        #expect(object?["time"] as? String == time)
        #expect(object?["level"] as? String == "debug")
        #expect(object?["message"] as? String == "call failed")
        #expect(object?["principal"] as? String == #"ada "the" first"#)
        #expect(object?["connection"] as? Int == 7)
        #expect(object?["seconds"] as? Double == 1.5)
        #expect(object?["error"] as? String == "timeout")
    }

    @Test("client data cannot forge a line or a field")
    func injection() throws {
        let evil = "a\n2026-05-01T12:00:00.000Z error hacked\u{1b}[2J\u{202e}\" level=\"critical"
        let peer = ServerEvent.Peer(connection: 1, address: nil, principal: evil)
        let record = try #require(LogRecord(.connectionOpened(peer)))
        for text in [record.text(at: "T"), record.json(at: "T")] {
            #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x202e })
        }
        #expect(record.text(at: "T").hasPrefix(#"T info connection opened connection=1 principal="a\n2026"#) == false)
        let object = try JSONSerialization.jsonObject(with: Data(record.json(at: "T").utf8)) as? [String: Any]
        #expect(object?["level"] as? String == "info")
        #expect((object?["principal"] as? String)?.contains("level=\"critical") == true)
    }

    @Test("a level omits less important lines, and the log does not receive their events")
    func levels() {
        #expect(!ServerLog(level: .notice).kinds.contains(.connections))
        #expect(ServerLog(level: .info).kinds.contains(.connections))
        #expect(!ServerLog(level: .info).kinds.contains(.calls))
        #expect(ServerLog(level: .debug).kinds.isSuperset(of: [.calls, .streams, .actors]))
        #expect(!ServerLog(level: .debug).kinds.contains(.deliveries))
        #expect(ServerLog(level: .trace).kinds.isSuperset(of: [.versions, .deliveries]))
        #expect(ServerEvent.Level.allCases == ServerEvent.Level.allCases.sorted())
        let lines = Lines()
        let log = ServerLog(level: .warning, write: lines.add)
        log.log(.notice, "left out")
        log.log(.error, "there")
        log.handle(.serverDraining)
        log.flush()
        #expect(lines.all.map { $0.split(separator: " ", maxSplits: 1).last ?? "" } == ["error there"])
    }

    @Test("refusals are logged once a second, with the number of the others")
    func pauses() {
        var pauses = LogRateLimiter()
        let second: UInt64 = 1_000_000_000
        #expect(pauses.admitLine("refused", at: 5 * second) == 0)
        #expect(pauses.admitLine("refused", at: 5 * second + 1) == nil)
        #expect(pauses.admitLine("limit streams", at: 5 * second + 1) == 0)
        #expect(pauses.admitLine("refused", at: 6 * second - 1) == nil)
        #expect(pauses.admitLine("refused", at: 6 * second) == 2)
        #expect(pauses.admitLine("refused", at: 7 * second) == 0)
    }

    @Test("a blocked log output does not block others, and the dropped lines are counted")
    func unread() async {
        let lines = Lines()
        let gate = ThreadSemaphore()
        let queue = LogQueue { line in
            if lines.all.isEmpty { gate.wait() }
            lines.add(line)
        }
        let line = String(repeating: "a", count: 100_000)
        for _ in 0..<30 { queue.append(line) }
        gate.signal()
        await onThread { queue.flush(within: .seconds(60)) }
        // One more line may have been taken out of the queue before it was full.
        let loggedCount = lines.all.count { $0 == line }
        #expect((10...11).contains(loggedCount))
        #expect(lines.all.contains { $0.hasPrefix("\(30 - loggedCount) log lines dropped") })
        queue.append("again")
        await onThread { queue.flush(within: .seconds(60)) }
        #expect(lines.all.last == "again")
    }

    @Test("the log also has the lines that follow the shutdown; other handlers receive no event any more")
    func shutdown() async throws {
        let (log, other) = (Lines(), Lines())
        let server = TrebuchetServer(transport: .webSocket(port: 0), reactors: 1, log: ConsoleLog(write: log.add))
        server.addEventHandler(ConsoleLog(write: other.add))
        server.log("before")
        await server.shutdown()
        server.log("after")
        #expect(log.all == ["before", "after"])
        #expect(other.all == ["before"])
    }

    @Test("a server's log has connections, calls and refusals, and no argument, token or result")
    func server() async throws {
        let lines = Lines()
        let log = ServerLog(level: .trace, format: .json, write: lines.add)
        var access = AccessPolicy { request in
            guard let token = request.bearerToken else { throw AccessDenied.unauthenticated("a token is needed") }
            guard token == "right-token" else { throw AccessDenied.forbidden("it has expired") }
            return Principal(id: "ada")
        }
        access.identifiesCallers = true
        var options = TrebuchetClient.Options()
        options.token = { "right-token" }
        try await withTestServer(options: options, access: access, store: MemoryStore()) { server in
            server.addEventHandler(log)
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
        } body: { client, server async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            var seen = await shelf.observeBooks().makeAsyncIterator()
            _ = await seen.next()
            _ = try await shelf.put("secret-argument")
            _ = await seen.next()
            await #expect(throws: (any Error).self) { try await shelf.refuse("secret-argument") }
            var wrong = TrebuchetClient.Options()
            wrong.token = { "secret-token" }
            wrong.reconnect = .never
            let port = try #require(server.address?.port)
            let other = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port), options: wrong)
            await #expect(throws: (any Error).self) { try await other.connect() }
            await other.close()
        }
        await onThread { log.flush() }
        let all = lines.all
        #expect(!all.joined().contains("secret"))
        let objects = all.compactMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
        #expect(objects.count == all.count)
        func first(_ message: String) -> [String: Any]? { objects.first { $0["message"] as? String == message } }
        #expect(first("connection opened")?["principal"] as? String == "ada")
        #expect(first("call ended")?["method"] as? String == "put(_:)")
        #expect(first("call failed")?["error"] as? String == "application")
        #expect(first("request rejected")?["status"] as? Int == 403)
        #expect(first("request rejected")?["reason"] as? String == "it has expired")
        #expect(first("version created") != nil && first("update delivered") != nil)
        #expect(first("stopped") != nil)
    }
}
