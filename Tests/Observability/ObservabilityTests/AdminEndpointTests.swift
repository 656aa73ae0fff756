import Foundation
import Networking
import Platform
import Synchronization
import TestCertificates
import TestSupport
import Testing
import Transports
import TrebuchetTesting

@testable import Trebuchet

/// The admin endpoint, and unauthorized peers of it.
@Suite(.timeLimit(.minutes(5))) struct AdminEndpointTests {
    private static let token = "a-token-of-twenty-b."

    private func withAdmin(
        token: String? = nil, store: (any StateStore)? = nil, clock: TestTime? = nil,
        _ body: (TrebuchetClient, TrebuchetServer, SocketAddress) async throws -> Void
    ) async throws {
        try await withTestServer(reactors: clock == nil ? 2 : nil, store: store, clock: clock) { server in
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
        } body: { client, server async throws in
            try await body(client, server, try server.openAdmin(port: 0, token: token))
        }
    }

    private func status(_ answer: String) -> String { String(answer.dropFirst("HTTP/1.1 ".count).prefix(3)) }

    private func get(
        _ path: String, _ address: SocketAddress, _ fields: String..., host: String = "localhost"
    ) async throws -> String {
        status(try await RawPeer.get(path, at: address, fields, host: host))
    }

    // MARK: Addresses

    @Test(
        "an address reachable from other machines is refused without TLS and a token",
        arguments: [
            ("0.0.0.0", nil), ("::", nil), ("192.0.2.1", nil), ("0.0.0.0", token), ("example.org", token), ("", nil),
            ("127.0.0.1", "too short"), ("127.0.0.1", ""),
        ] as [(String, String?)])
    func refused(host: String, token: String?) throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        let error = #expect(throws: TransportError.self) {
            try server.openAdmin(host: host, port: 0, token: token)
        }
        #expect(error?.code == .addressInvalid)
    }

    @Test("there is one admin endpoint, local to this machine, and none after the end")
    func one() async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        let address = try server.openAdmin(host: "localhost", port: 0)
        #expect(address.host == "127.0.0.1" || address.host == "::1")
        #expect(throws: TransportError.self) { try server.openAdmin(port: 0) }
        await server.shutdown()
        #expect(throws: (any Error).self) { try RawPeer(address) }
        #expect(throws: TransportError.self) { try server.openAdmin(port: 0) }
    }

    @Test("with TLS and a token the endpoint may be reachable from other machines, and accepts only TLS")
    func secured() async throws {
        let tls = TLSServerSettings(
            certificateChainFile: TestCertificate.path("server.pem"),
            privateKeyFile: TestCertificate.path("server.key"))
        let server = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        let address = try server.openAdmin(host: "0.0.0.0", port: 0, tls: tls, token: Self.token)
        try await server.start()
        let local = try #require(SocketAddress(literal: "127.0.0.1", port: address.port))
        #expect(try await !RawPeer.get("/metrics", at: local).contains("trebuchet_"))
        let curl = try await ChildProcess(
            "/usr/bin/curl",
            [
                "-s", "--cacert", TestCertificate.path("ca.pem"), "-H", "Authorization: Bearer \(Self.token)",
                "https://localhost:\(address.port)/metrics",
            ], error: .captured
        ).finish()
        #expect(curl.output.contains("\ntrebuchet_ready 1\n"), "\(curl)")
        await server.shutdown()
    }

    @Test("metrics have the expiry of each loaded certificate, and a reload replaces them at all endpoints")
    func certificates() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "trebuchet-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (certificate, key) = (folder.appending(path: "server.pem"), folder.appending(path: "server.key"))
        func install(days: Int) throws {
            let made = try CertifiedKey.makeAuthority(validFor: .seconds(days * 86_400))
            try Data(made.certificateText).write(to: certificate)
            try Data(made.keyText).write(to: key)
            chmod(key.path, 0o600)
        }
        func days(_ metrics: String, _ endpoint: String) -> Double? {
            let line = metrics.split(separator: "\n").first {
                $0.hasPrefix("trebuchet_certificate_expiry_timestamp_seconds{endpoint=\"\(endpoint)\"}")
            }
            return line.flatMap { Double($0.split(separator: " ")[1]) }
                .map { (($0 - Date().timeIntervalSince1970) / 86_400).rounded() }
        }
        try install(days: 10)
        let tls = TLSServerSettings(certificateChainFile: certificate.path, privateKeyFile: key.path)
        let server = TrebuchetServer(transport: .webSocket(port: 0, tls: tls), log: nil)
        let address = try server.openAdmin(port: 0, tls: tls)
        #expect(try await days(server.prometheusMetrics(), "admin") == 10)
        #expect(try await days(server.prometheusMetrics(), "clients") == nil)
        try await server.start()
        #expect(try await days(server.prometheusMetrics(), "clients") == 10)
        // Not before the reload, whatever the files are.
        try install(days: 100)
        #expect(try await days(server.prometheusMetrics(), "admin") == 10)
        try server.reloadCertificates()
        for endpoint in ["admin", "clients"] {
            #expect(try await days(server.prometheusMetrics(), endpoint) == 100, "\(endpoint)")
        }
        let curl = try await ChildProcess(
            "/usr/bin/curl", ["-sv", "--insecure", "https://127.0.0.1:\(address.port)/livez"], error: .captured
        ).finish()
        let served = try #require(curl.error.firstMatch(of: /expire date: ([^\n]+?) GMT/)).output.1
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "UTC")
        format.dateFormat = "MMM d HH:mm:ss yyyy"
        let text = served.split(separator: " ").joined(separator: " ")
        let end = try #require(format.date(from: text), "\(served)").timeIntervalSinceNow / 86_400
        #expect(end.rounded() == 100, "the admin endpoint serves the certificate of the reload")
        let build = "\ntrebuchet_build_info{version=\"\(LibraryVersion.number)\"} 1\n"
        #expect(try await server.prometheusMetrics().contains(build))
        await server.shutdown()
    }

    // MARK: Content

    @Test("operators receive metrics, health checks and an overview of the paths")
    func paths() async throws {
        try await withAdmin { client, _, address in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await shelf.put("a")
            _ = try await shelf.putLater("b")
            let metrics = try await RawPeer.get("/metrics", at: address)
            #expect(metrics.contains("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"))
            for line in [
                "trebuchet_connections 1", "trebuchet_ready 1",
                #"trebuchet_call_duration_seconds_count{type="ObservabilityTests.Shelf",method="put(_:)"}"#,
                #"trebuchet_call_duration_seconds_count{type="ObservabilityTests.Shelf",method="putLater(_:)"}"#,
                #"trebuchet_call_duration_seconds_bucket{type="ObservabilityTests.Shelf",method="put(_:)",le="5e-05"}"#,
            ] {
                #expect(metrics.contains("\n\(line)"), "\(line)")
            }
            for (path, status) in [
                ("/livez", "200"), ("/readyz", "200"), ("/healthz", "200"), ("/", "404"), ("/metrics/", "404"),
                ("/../metrics", "404"), ("/%6detrics", "404"),
            ] {
                #expect(try await get(path, address) == status, "\(path)")
            }
            #expect(try await RawPeer.get("/readyz?verbose", at: address).contains("[+] server: ok\n[+] reactors: ok"))
            let head = try await RawPeer.get("/metrics", at: address, method: "HEAD")
            #expect(status(head) == "200" && !head.contains("trebuchet_"))
        }
    }

    @Test(
        "a server is ready from listening to the start of its shutdown, and serves clients until the delay has passed")
    func readiness() async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0), log: nil)
        await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
        let address = try server.openAdmin(port: 0)
        #expect(try await get("/readyz", address) == "503")
        #expect(try await get("/healthz", address) == "503")
        #expect(try await eventually { try await get("/livez", address) == "200" })
        let port = try await server.start().port
        #expect(try await eventually { try await get("/readyz", address) == "200" })
        let leaving = Task { await server.shutdown(delay: .seconds(600), drain: .zero) }
        #expect(try await eventually { try await get("/readyz", address) == "503" })
        #expect(try await get("/healthz", address) == "200")
        #expect(try await RawPeer.get("/metrics", at: address).contains("\ntrebuchet_ready 0\n"))
        // A client that has not noticed the change is accepted.
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        #expect(try await client.resolve(Shelf.self, id: "shelf").put("a") == 1)
        leaving.cancel()
        await leaving.value
        await client.close()
        #expect(server.status == .stopped)
    }

    @Test("an unreadable store makes a server unready, with the reason in the verbose form")
    func store() async throws {
        let store = BreakableStore()
        try await withAdmin(store: store) { _, server, address async throws in
            #expect(try await eventually { try await get("/readyz", address) == "200" })
            store.isBroken.withLock { $0 = true }
            #expect(try await get("/readyz", address) == "503")
            let answer = try await RawPeer.get("/readyz?verbose", at: address)
            #expect(answer.contains("[-] store: it cannot be read: ") && answer.contains("[+] server: ok"))
            // A restart would not help.
            #expect(try await eventually { try await get("/livez", address) == "200" })
            store.isBroken.withLock { $0 = false }
            #expect(try await eventually { try await get("/readyz", address) == "200" })
        }
    }

    @Test("an unresponsive reactor is named")
    func blockedReactor() async throws {
        // The clock has separate threads: no other test is blocked.
        try await withTestServer(clock: TestTime(reactors: 2)) { server in
            await server.expose(BlockingActor(actorSystem: server.actorSystem), as: "holder")
        } body: { client, server async throws in
            #expect(await eventually { await server.liveness().failureReason == nil })
            let holder = try client.resolve(BlockingActor.self, id: "holder")
            let call = Task { try await holder.hold() }
            await onThread { BlockingActor.gate.began.wait() }
            let problem = await server.liveness().failureReason
            #expect(problem?.hasSuffix("no response within 2.0 seconds") == true, "\(problem ?? "-")")
            await #expect(throws: TrebuchetError.self) { _ = try await server.prometheusMetrics() }
            BlockingActor.gate.end.signal()
            try await call.value
            #expect(await eventually { await server.liveness().failureReason == nil })
        }
    }

    @Test("readiness is reported within 2 seconds, even when all reactors are blocked")
    func allReactorsBlocked() async throws {
        try await withTestServer(store: MemoryStore(), clock: TestTime(reactors: 8)) { _ in
        } body: { _, server async throws in
            let gate = ThreadSemaphore()
            for shard in server.shards { shard.reactor.execute { gate.wait() } }
            let began = ContinuousClock.now
            let checks = await server.readiness()
            let duration = ContinuousClock.now - began
            for _ in server.shards { gate.signal() }
            #expect(checks.contains { $0.name == "reactors" && $0.failureReason?.split(separator: ",").count == 8 })
            // In sequence they would take 16 s, and 16 s more for their writes; a busy machine needs some time as well.
            #expect(duration < .seconds(12), "it took \(duration)")
        }
    }

    // MARK: Unauthorized peers

    @Test("without the right token only health checks are accessible")
    func tokens() async throws {
        try await withAdmin(token: Self.token) { _, _, address async throws in
            for path in ["/metrics", "/readyz?verbose", "/metrics?token=\(Self.token)"] {
                for field in [
                    "X-Nothing: 1", "Authorization: Bearer", "Authorization: Bearer x",
                    "Authorization: Basic \(Self.token)",
                    "Authorization: Bearer \(Self.token.dropLast())", "Authorization: Bearer \(Self.token)x",
                    "Sec-WebSocket-Protocol: bearer.x",
                ] {
                    let answer = try await RawPeer.get(path, at: address, [field])
                    #expect(status(answer) == "401", "\(path) \(field)")
                    #expect(answer.contains("\r\nWWW-Authenticate: Bearer\r\n") && !answer.contains("trebuchet_"))
                }
            }
            for path in ["/livez", "/readyz", "/healthz"] { #expect(try await get(path, address) == "200") }
        }
        let plain = "0123456789abcdef"
        try await withAdmin(token: plain) { _, _, address async throws in
            for path in ["/metrics", "/readyz?verbose"] {
                #expect(try await get(path, address, "Authorization: Bearer \(plain)") == "200")
            }
        }
    }

    @Test("web pages are refused, by their origin and by a rebound host name")
    func pages() async throws {
        try await withAdmin { _, _, address in
            for origin in ["https://evil.example", "http://localhost:\(address.port)", "null"] {
                let answer = try await RawPeer.get("/metrics", at: address, ["Origin: \(origin)"])
                #expect(status(answer) == "403" && !answer.contains("trebuchet_"), "\(origin)")
            }
            for host in [
                "evil.example", "evil.example:\(address.port)", "127.0.0.1.evil.example", "localhost.evil.example",
                "192.0.2.1",
            ] {
                #expect(try await get("/metrics", address, host: host) == "403", "\(host)")
            }
            for host in ["localhost", "127.0.0.1:\(address.port)", "[::1]", "LOCALHOST:1"] {
                #expect(try await get("/metrics", address, host: host) == "200", "\(host)")
            }
        }
    }

    @Test(
        "a request with a body, another method or an excessive size ends with an error",
        arguments: [
            ("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "413"),
            ("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
            ("GET /\(String(repeating: "a", count: 9_000)) HTTP/1.1\r\nHost: localhost\r\n\r\n", "414"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nA: \(String(repeating: "a", count: 20_000))\r\n\r\n", "431"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\(String(repeating: "A: b\r\n", count: 200))\r\n", "431"),
            (
                "GET /metrics HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", "404"
            ),
            ("\u{16}\u{3}\u{1}\r\n\r\n", "400"),
        ])
    func strange(text: String, wanted: String) async throws {
        try await withAdmin { _, _, address in
            let peer = try RawPeer(address)
            peer.writeText(text)
            #expect(status(await peer.readAll()) == wanted)
            #expect(try await get("/livez", address) == "200")
        }
    }

    @Test("an incomplete request ends with a timeout")
    func slow() async throws {
        let clock = TestTime()
        try await withAdmin(clock: clock) { _, _, address async throws in
            let (silent, slow) = (try RawPeer(address), try RawPeer(address))
            slow.writeText("GET /metrics HTTP/1.1\r\nHost: loc")
            // Its response shows that both earlier connections have been accepted.
            #expect(try await get("/livez", address) == "200")
            await clock.advance(by: .seconds(11))
            #expect(status(await silent.readAll()) == "408")
            #expect(status(await slow.readAll()) == "408")
        }
    }

    @Test("very many connections to the admin endpoint do not affect clients, and free their capacity when they close")
    func crowd() async throws {
        try await withAdmin { client, _, address in
            var crowd: [RawPeer] = []
            for _ in 0..<800 { crowd.append(try RawPeer(address)) }
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            for number in 1...20 { #expect(try await shelf.put("a") == number) }
            // Idle connections cannot lock operators out: the longest-idle one is evicted.
            for path in ["/livez", "/metrics"] { #expect(try await get(path, address) == "200") }
            #expect(await crowd[0].readAll().isEmpty)
            crowd = []
            #expect(try await eventually { try await get("/metrics", address) == "200" })
        }
    }

    @Test("a peer that sends many requests on one connection without reading does not block the server")
    func unread() async throws {
        try await withAdmin { client, _, address in
            let peer = try RawPeer(address, receiveBuffer: 4_096)
            // More requests than the server answers without a read.
            for _ in 0..<500 where peer.writeText("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") < 0 { break }
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            for number in 1...20 { #expect(try await shelf.put("a") == number) }
            #expect(try await get("/metrics", address) == "200")
        }
    }
}

/// A store that can be made to fail.
private final class BreakableStore: StateStore {
    let isBroken = Mutex(false)
    private let store = MemoryStore()

    private func check() throws(StateStoreError) {
        if isBroken.withLock({ $0 }) { throw StateStoreError(.failed, "the disk is gone") }
    }

    func get(_ keys: [StateKey]) async throws(StateStoreError) -> [StateKey: [UInt8]] {
        try check()
        return try await store.get(keys)
    }
    func list(
        _ namespace: String, prefix: String, after: String?, limit: Int
    ) async throws(StateStoreError) -> [StateEntry] {
        try await store.list(namespace, prefix: prefix, after: after, limit: limit)
    }
    func readLog(_ key: StateKey) async throws(StateStoreError) -> StoredLog? { try await store.readLog(key) }
    func write(_ writes: [StateWrite]) async throws(StateStoreError) {
        try check()
        try await store.write(writes)
    }
}

/// Blocks its reactor, as no actor should.
@Trebuchet
distributed actor BlockingActor {
    struct Gate {
        let began = ThreadSemaphore()
        let end = ThreadSemaphore()
    }

    static let gate = Gate()

    distributed func hold() {
        Self.gate.began.signal()
        Self.gate.end.wait()
    }
}
