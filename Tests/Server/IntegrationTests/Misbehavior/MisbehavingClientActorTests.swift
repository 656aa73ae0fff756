import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting
import WebSockets

/// Misbehaving clients that pass references.
@Suite(.timeLimit(.minutes(5))) struct MisbehavingClientActorTests {
    private static let identity = "an-identity-that-nobody-guesses"

    private func withHost(
        limits: ServerLimits = ServerLimits(), access: AccessPolicy = .open,
        options: TrebuchetClient.Options = .init(),
        _ body: (ClientReferenceHolder, SocketAddress, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(limits: limits, options: options, access: access) { server in
            await server.expose(ClientReferenceHolder(actorSystem: server.actorSystem), as: "host")
        } body: { client, server in
            try await body(client.resolve(ClientReferenceHolder.self, id: "host"), #require(server.address), server)
        }
    }

    private func peer(
        _ address: SocketAddress, as identity: String? = identity, key: String? = nil, from host: String? = nil
    ) async throws -> RawPeer {
        var headers: HTTPHeaders = [:]
        if let key { headers.add("X-API-Key", key) }
        if let host { headers.add("X-Forwarded-For", host) }
        let peer = try await RawPeer.connect(address, headers: headers)
        if let identity {
            peer.introduce(identity)
            #expect(try await peer.next()?.type == "hello")
        }
        return peer
    }

    private func enter(_ peer: RawPeer, _ name: String = "v") async throws -> Message.Payload.Failure? {
        peer.invoke("1", "host", "enter(_:)", #"[{"client":"\#(name)"}]"#)
        return try await peer.next()?.payload.error
    }

    private func answer(_ peer: RawPeer, _ callID: String, _ result: String) {
        peer.send(#"{"type":"response","payload":{"callID":"\#(callID)","result":\#(result)}}"#)
    }

    @Test("a reference is accepted from a client with an identity, and needs a name")
    func introduced() async throws {
        try await withHost { _, address, server in
            let stranger = try await peer(address, as: nil)
            #expect(try await enter(stranger)?.code == "invalidArguments")
            // An identity that can be guessed is rejected.
            stranger.introduce("short")
            #expect(try await stranger.next()?.type == "error")
            #expect(try await enter(stranger)?.code == "invalidArguments")
            let known = try await peer(address)
            for name in ["", String(repeating: "x", count: 257)] {
                #expect(try await enter(known, name)?.code == "invalidArguments")
            }
            #expect(try await enter(known) == nil)
            // One client for one connection.
            known.introduce(Self.identity)
            #expect(try await known.next()?.type == "hello")
            known.introduce("another-identity-that-nobody-guesses")
            #expect(try await known.next()?.type == "error")
            #expect(server.clientActorCount == 1)
            for each in [stranger, known] { each.close() }
        }
    }

    @Test("a client with a forged identity gets no call of another client")
    func inventedNames() async throws {
        let keys = ["a": Principal(id: "Ada"), "b": Principal(id: "Bob")]
        var options = TrebuchetClient.Options()
        options.token = { "a" }
        try await withHost(access: AccessPolicy(authenticate: AccessPolicy.apiKeys(keys)), options: options) {
            host, address, server in
            let ada = try await peer(address, key: "a")
            #expect(try await enter(ada) == nil)
            // The same identity with another principal, and other identities.
            let strangers = [
                try await peer(address, key: "b"), try await peer(address, as: Self.identity + "x", key: "a"),
                try await peer(address, as: Self.identity.uppercased(), key: "a"),
            ]
            #expect(server.hostingClientCount == 4)
            let call = Task { try await host.tell("a") }
            let asked = try #require(await ada.next())
            #expect(asked.type == "invocation")
            let callID = try #require(asked.payload.callID)
            for stranger in strangers {
                answer(stranger, callID, "666")
                #expect(try await stranger.next()?.type == "error", "no call was received before the error")
            }
            answer(ada, callID, "7")
            #expect(try await call.value == ["7"])
            for each in strangers + [ada] { each.close() }
        }
    }

    @Test("an actor of a client is separate from the server's and other clients' actors of equal names")
    func names() async throws {
        try await withHost { host, address, server in
            let first = try await peer(address)
            let second = try await peer(address, as: "another-identity-that-nobody-guesses")
            for each in [first, second] { #expect(try await enter(each, "host") == nil) }
            #expect(server.clientActorCount == 2)
            let call = Task { try await host.tell("a") }
            let asked = try #require(await second.next())
            answer(second, asked.payload.callID ?? "", "2")
            #expect(try await call.value == ["2"])
            #expect(first.waitingCount == 0)
            for each in [first, second] { each.close() }
        }
    }

    @Test("responses to unknown calls end the sender's connection, and late ones are ignored")
    func unknownResponses() async throws {
        try await withHost { host, address, _ in
            let peer = try await peer(address)
            #expect(try await enter(peer) == nil)
            let late = Task { try await host.tell("a") }
            #expect(try await peer.next()?.type == "invocation")
            late.cancel()
            #expect(try await peer.next()?.type == "cancel")
            _ = try? await late.value
            answer(peer, "1", "7")
            let call = Task { try await host.tell("b") }
            #expect(try await peer.next()?.payload.callID == "2")
            for text in ["3", "x", "18446744073709551616", "0x1"] {
                answer(peer, text, "666")
                let error = try await peer.next()
                #expect(error?.type == "error", "\(text)")
            }
            answer(peer, "2", "5")
            #expect(try await call.value == ["5"])
            // Answered already.
            answer(peer, "2", "6")
            for _ in 0..<10 { answer(peer, "99", "666") }
            while let message = try await peer.next() { #expect(message.type == "error") }
        }
    }

    @Test("an oversized or malformed response fails only its call")
    func answers() async throws {
        var limits = ServerLimits()
        limits.clientCalls.responseBytes = 1_000
        try await withHost(limits: limits) { host, address, server in
            let peer = try await peer(address)
            #expect(try await enter(peer) == nil)
            let first = Task { try await host.tell("a") }
            let callID = try #require(await peer.next()?.payload.callID)
            answer(peer, callID, #""\#(String(repeating: "x", count: 1_000))""#)
            let outcome = try await first.value
            #expect(outcome.first == "internal")
            #expect(outcome.last?.contains("ServerLimits.clientCalls.responseBytes") == true, "\(outcome)")
            let second = Task { try await host.tell("b") }
            answer(peer, try #require(await peer.next()?.payload.callID), #""seven""#)
            #expect(try await second.value.first == "internal")
            let third = Task { try await host.tell("c") }
            answer(peer, try #require(await peer.next()?.payload.callID), "3")
            #expect(try await third.value == ["3"])
            peer.close()
            // A client that knows the limit does not send more.
            let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
            try await client.connect()
            let clientActor = CalledClientActor(actorSystem: client.actorSystem)
            try await client.resolve(ClientReferenceHolder.self, id: "host").enter(clientActor)
            #expect(try await host.ask(100) == ["100"])
            let refused = try await host.ask(2_000)
            #expect(refused.first == "internal")
            #expect(refused.last?.contains("ServerLimits.clientCalls.responseBytes") == true, "\(refused)")
            await client.close()
        }
    }

    @Test("the references of one client, and of all, are limited; the error names limit and setting")
    func references() async throws {
        var limits = ServerLimits()
        limits.clientActors.perClient = 2
        limits.clientActors.total = 3
        try await withHost(limits: limits) { host, address, server in
            let first = try await peer(address)
            for name in ["a", "b", "a"] { #expect(try await enter(first, name) == nil) }
            let refusal = try await enter(first, "c")
            #expect(refusal?.code == "rateLimited")
            #expect(
                refusal?.message.contains("ServerLimits.clientActors.perClient") == true, "\(refusal?.message ?? "")")
            let second = try await peer(address, as: "another-identity-that-nobody-guesses")
            #expect(try await enter(second, "a") == nil)
            let full = try await enter(second, "b")
            #expect(full?.message.contains("ServerLimits.clientActors.total)") == true, "\(full?.message ?? "")")
            try await host.leaveAll()
            #expect(await eventually { server.clientActorCount == 0 })
            #expect(try await enter(first, "c") == nil)
            for each in [first, second] { each.close() }
        }
    }

    /// Runs `body` with a server that admits two of a kind for each party, and a function that connects as a principal from a host.
    private func withShares(
        _ whose: String, _ limits: ServerLimits,
        _ body: (ClientReferenceHolder, TrebuchetServer, (_ client: Int, _ party: Int) async throws -> RawPeer)
            async throws -> Void
    ) async throws {
        let keys = ["0": Principal(id: "Ada"), "1": Principal(id: "Bob"), "host": Principal(id: "the host")]
        var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))
        access.trustedProxies = ["127.0.0.1"]
        var options = TrebuchetClient.Options()
        options.token = { "host" }
        try await withHost(limits: limits, access: access, options: options) { host, address, server in
            try await body(host, server) { client, party in
                let isPrincipal = whose == "Principal"
                return try await peer(
                    address, as: "identity-number-\(client)-that-nobody-guesses", key: isPrincipal ? "\(party)" : "0",
                    from: isPrincipal ? "203.0.113.\(client)" : "198.51.100.\(party)")
            }
        }
    }

    @Test(
        "the references of a principal's clients, and of a host's, are limited separately",
        arguments: ["Principal", "Host"])
    func shares(whose: String) async throws {
        let setting = "clientActors.per\(whose)"
        var limits = ServerLimits()
        if whose == "Principal" { limits.clientActors.perPrincipal = 2 } else { limits.clientActors.perHost = 2 }
        try await withShares(whose, limits) { host, server, peer in
            let first = try await peer(1, 0)
            let second = try await peer(2, 0)
            for each in [first, second] { #expect(try await enter(each) == nil) }
            let third = try await peer(3, 0)
            for each in [first, third] {
                let refusal = try await enter(each, "another")
                #expect(refusal?.code == "rateLimited")
                #expect(refusal?.message.contains("ServerLimits.\(setting))") == true, "\(refusal?.message ?? "")")
            }
            // A reference that it already has counts once.
            #expect(try await enter(first) == nil)
            let other = try await peer(4, 1)
            #expect(try await enter(other) == nil)
            #expect(server.clientActorCount == 3)
            // Their release makes room again.
            try await host.leaveAll()
            #expect(await eventually { server.clientActorCount == 0 })
            for each in [third, first] { #expect(try await enter(each, "another") == nil) }
            for each in [first, second, third, other] { each.close() }
        }
    }

    @Test(
        "the in-flight calls to a principal's clients, and to a host's, are limited separately",
        arguments: ["Principal", "Host"])
    func callShares(whose: String) async throws {
        let setting = "clientCalls.per\(whose)"
        var limits = ServerLimits()
        if whose == "Principal" { limits.clientCalls.perPrincipal = 2 } else { limits.clientCalls.perHost = 2 }
        try await withShares(whose, limits) { host, server, peer in
            var peers: [RawPeer] = []
            var waiting: [Task<[String], any Error>] = []
            // The host calls the newest entrant.
            for client in 1...2 {
                let next = try await peer(client, 0)
                #expect(try await enter(next) == nil)
                waiting.append(Task { try await host.tell("a") })
                #expect(try await next.next()?.type == "invocation")
                peers.append(next)
            }
            let third = try await peer(3, 0)
            #expect(try await enter(third) == nil)
            let outcome = try await host.tell("b")
            #expect(outcome.first == "rateLimited")
            #expect(outcome.last?.contains("ServerLimits.\(setting)") == true, "\(outcome)")
            let other = try await peer(4, 1)
            #expect(try await enter(other) == nil)
            let call = Task { try await host.tell("c") }
            answer(other, try #require(await other.next()?.payload.callID), "5")
            #expect(try await call.value == ["5"])
            for each in peers { answer(each, "1", "7") }
            for each in waiting { #expect(try await each.value == ["7"]) }
            #expect(server.callsToClientsCount == 0)
            for each in peers + [third, other] { each.close() }
        }
    }

    @Test(
        "the in-flight calls to one client and to all, and their bytes, are limited",
        arguments: [
            "clientCalls.perClient", "clientCalls.total", "clientCalls.bytesPerClient", "memory.total",
        ])
    func calls(setting: String) async throws {
        var limits = ServerLimits()
        switch setting {
        case "clientCalls.perClient": limits.clientCalls.perClient = 2
        case "clientCalls.total": limits.clientCalls.total = 2
        case "clientCalls.bytesPerClient": limits.clientCalls.bytesPerClient = 10_000
        default:
            limits.memory.total = 100_000
            limits.memory.perHost = 100_000
        }
        try await withHost(limits: limits) { host, address, server in
            let peer = try await peer(address)
            #expect(try await enter(peer) == nil)
            let waiting = (0..<2).map { _ in Task { try await host.tell("a") } }
            for _ in waiting { #expect(try await peer.next()?.type == "invocation") }
            let text = setting == "memory.total" ? String(repeating: "x", count: 60_000) : "b"
            let outcome: [String]
            do {
                outcome = try await host.tell(text)
            } catch let error as TrebuchetError where setting == "memory.total" {
                // A fragmented message is buffered until it is complete, and may be the one rejected.
                outcome = [error.code.description, error.message]
            }
            #expect(outcome.first == "rateLimited")
            // The client's host has a part of the memory, which is used up first.
            let limit = setting == "memory.total" ? "(memory.perHost)" : setting
            #expect(outcome.last?.contains(limit) == true, "\(outcome)")
            for callID in ["1", "2"] { answer(peer, callID, "7") }
            for each in waiting { #expect(try await each.value == ["7"]) }
            #expect(server.callsToClientsCount == 0)
            peer.close()
        }
    }

    @Test("a client that does not read is sent no more than it accepts; the calls wait, and end at their deadline")
    func unread() async throws {
        var limits = ServerLimits()
        limits.clientCalls.perClient = 40
        limits.clientCalls.timeout = .seconds(1)
        try await withHost(limits: limits) { host, address, server in
            let peer = try await peer(address)
            #expect(try await enter(peer) == nil)
            await peer.pauseReading()
            let text = String(repeating: "x", count: 400_000)
            let calls = (0..<30).map { _ in Task { try await host.tell(text) } }
            var outcomes: [[String]] = []
            for call in calls { outcomes.append(try await call.value) }
            #expect(outcomes.allSatisfy { $0.first == "timeout" })
            #expect(outcomes.contains { $0.last?.contains("accepts no more calls") == true })
            #expect(server.callsToClientsCount == 0)
            await peer.resumeReading()
            let answering = Task {
                while let message = try await peer.next() {
                    guard message.type == "invocation", let callID = message.payload.callID else { continue }
                    answer(peer, callID, "1")
                }
            }
            // The limit of a second applies to each call, and reading the earlier messages may take longer.
            #expect(await eventually { (try? await host.tell("now")) == ["1"] })
            peer.close()
            try await answering.value
        }
    }

    @Test("a client that leaves receives no more calls, and its references are rejected")
    func leaves() async throws {
        try await withHost { host, address, server in
            let peer = try await peer(address)
            #expect(try await enter(peer) == nil)
            peer.send(#"{"type":"goAway","payload":{"reason":"closed"}}"#)
            #expect(try await enter(peer)?.code == "unavailable")
            #expect(try await host.tell("a").first == "unavailable")
            #expect(server.clientActorCount == 0)
            peer.close()
        }
    }
}
