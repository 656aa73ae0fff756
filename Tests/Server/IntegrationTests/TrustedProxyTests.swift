import Networking
import Synchronization
import TestSupport
import Testing
import Trebuchet
import WebSockets

/// Connections from a proxy on loopback, attributed to the clients behind it.
@Suite(.timeLimit(.minutes(5))) struct TrustedProxyTests {
    private final class CallerRecorder: Sendable {
        private let list = Mutex<[CallerConnection]>([])
        var hosts: [String?] { list.withLock { $0.map { $0.remoteAddress?.host } } }
        var addresses: [SocketAddress?] { list.withLock { $0.map(\.remoteAddress) } }
        func add(_ guest: CallerConnection) { list.withLock { $0.append(guest) } }
    }

    private func withServer(
        trusting proxies: Set<String>, limits: ServerLimits = ServerLimits(),
        _ body: (SocketAddress, CallerRecorder) async throws -> Void
    ) async throws {
        let guests = CallerRecorder()
        var access = AccessPolicy()
        access.trustedProxies = proxies
        access.onConnect = { guests.add($0) }
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, limits: limits, access: access)
        await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "mirror")
        let address = try await server.start()
        do {
            try await body(address, guests)
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    private func refusal(_ address: SocketAddress, _ forwarded: String) async -> String? {
        do {
            try await RawPeer.connect(address, headers: ["X-Forwarded-For": forwarded]).abort()
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test("the caller is the client behind the proxy, or the proxy itself when it sends no address")
    func caller() async throws {
        try await withServer(trusting: ["127.0.0.0/8"]) { address, guests in
            for headers: HTTPHeaders in [
                ["X-Forwarded-For": "198.51.100.1, 203.0.113.7"], ["X-Forwarded-For": "2001:db8::1, 127.0.0.1"], [:],
                ["X-Forwarded-For": "127.0.0.9"],
            ] {
                try await RawPeer.connect(address, headers: headers).abort()
            }
            #expect(guests.hosts == ["203.0.113.7", "2001:db8::1", "127.0.0.1", "127.0.0.9"])
            #expect(guests.addresses.first??.port == 0)
        }
    }

    @Test("forwarded addresses of other peers are ignored", arguments: [[], ["10.0.0.0/8"]] as [Set<String>])
    func others(proxies: Set<String>) async throws {
        try await withServer(trusting: proxies) { address, guests in
            try await RawPeer.connect(address, headers: ["X-Forwarded-For": "203.0.113.7"]).abort()
            try await RawPeer.connect(address, headers: ["X-Forwarded-For": "nonsense"]).abort()
            #expect(guests.hosts == ["127.0.0.1", "127.0.0.1"])
        }
    }

    @Test("a proxy that names no address is answered 400 with the reason")
    func malformed() async throws {
        try await withServer(trusting: ["127.0.0.1"]) { address, _ in
            let reason = await refusal(address, "203.0.113.7, unknown")
            #expect(
                reason?.contains(
                    "responded with 400 instead of 101: X-Forwarded-For contains 'unknown', which is not an address")
                    == true,
                "\(reason ?? "admitted")")
        }
    }

    @Test("connections are limited for each address behind the proxy, and a closed one makes room")
    func connections() async throws {
        var limits = ServerLimits()
        limits.connections.perHost = 2
        try await withServer(trusting: ["127.0.0.1"], limits: limits) { address, _ in
            let ada: HTTPHeaders = ["X-Forwarded-For": "203.0.113.7"]
            let first = try await RawPeer.connect(address, headers: ada)
            let second = try await RawPeer.connect(address, headers: ada)
            let reason = await refusal(address, "203.0.113.7")
            #expect(reason?.contains("responded with 429 instead of 101") == true, "\(reason ?? "admitted")")
            #expect(reason?.contains("connections.perHost") == true)
            #expect(await refusal(address, "203.0.113.8") == nil)
            first.abort()
            // The server notices the end a little later.
            #expect(await eventually { await refusal(address, "203.0.113.7") == nil })
            second.abort()
        }
    }

    @Test("the quota of a host applies to the client, not to the proxy")
    func shares() async throws {
        var limits = ServerLimits()
        limits.streams.perHost = 1
        try await withServer(trusting: ["127.0.0.1"], limits: limits) { address, _ in
            func outcome(_ host: String) async throws -> (RawPeer, String) {
                let peer = try await RawPeer.connect(address, headers: ["X-Forwarded-For": host])
                peer.invoke("1", "mirror", "observeCount")
                return (peer, await peer.nextText() ?? "closed")
            }
            let (first, begun) = try await outcome("203.0.113.7")
            let (second, refused) = try await outcome("203.0.113.7")
            let (third, other) = try await outcome("203.0.113.8")
            #expect(begun.contains("streamStart"))
            #expect(refused.contains("rateLimited") && refused.contains("streams.perHost"), "\(refused)")
            #expect(other.contains("streamStart"))
            for peer in [first, second, third] { peer.abort() }
        }
    }

    @Test("a server does not start with a list that contains an invalid address")
    func invalid() async throws {
        var access = AccessPolicy()
        access.trustedProxies = ["127.0.0.1", "proxy.example"]
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
        let error = await #expect(throws: TransportError.self) { try await server.start() }
        #expect(error?.code == .addressInvalid)
        #expect(error?.message.contains("'proxy.example' in the list of trusted proxies") == true)
    }
}
