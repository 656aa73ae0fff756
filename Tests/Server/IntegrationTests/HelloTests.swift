import Testing
import Trebuchet
import TrebuchetTesting

/// The server's response to a client's hello.
@Suite(.timeLimit(.minutes(5))) struct HelloTests {
    private static let question = #"{"type":"hello","payload":{}}"#

    private func withPeer(
        limits: ServerLimits = ServerLimits(), subprotocols: [String] = ["trebuchet.v3"],
        _ body: (RawPeer) async throws -> Void
    ) async throws {
        try await withTestServer(limits: limits) { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let peer = try await RawPeer.connect(#require(server.address), subprotocols: subprotocols)
            try await body(peer)
            peer.close()
        }
    }

    private static func answer(_ peer: RawPeer, limits: ServerLimits, ping: Int?) -> String {
        #"{"type":"hello","payload":{"protocolVersion":3,"session":"\#(peer.session)","limits":{"callsPerConnection":"#
            + #"\#(limits.calls.perConnection),"callBytesPerConnection":\#(limits.calls.bytesPerConnection),"#
            + #""streamsPerConnection":\#(limits.streams.perConnection),"messageSize":\#(limits.messages.inboundBytes),"#
            + #""clientActorsPerClient":\#(limits.clientActors.perClient),"clientAnswerSize":\#(limits.clientCalls.responseBytes)}"#
            + (ping.map { #","pingIntervalMilliseconds":\#($0)"# } ?? "") + "}}"
    }

    @Test("a hello is answered with the connection's name, its limits and the heartbeat")
    func answer() async throws {
        try await withPeer { peer in
            peer.send(Self.question)
            #expect(!peer.session.isEmpty)
            #expect(await peer.nextText() == Self.answer(peer, limits: ServerLimits(), ping: 20_000))
        }
        var limits = ServerLimits()
        limits.calls.perConnection = 7
        limits.calls.bytesPerConnection = 70_000
        limits.streams.perConnection = 17
        limits.messages.inboundBytes = 2_000
        limits.connections.pingInterval = nil
        try await withPeer(limits: limits) { [limits] peer in
            // Unknown members are ignored, and hello may be repeated.
            for question in [
                #"{"type":"hello","new":[],"payload":{"agent":{"name":"x"},"limits":null}}"#, Self.question,
            ] {
                peer.send(question)
                #expect(await peer.nextText() == Self.answer(peer, limits: limits, ping: nil))
            }
        }
    }

    @Test("a script that cannot read the upgrade's response repeats a call under the name in its hello")
    func browser() async throws {
        try await withTestServer { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let address = try #require(server.address)
            var names: [String] = []
            for round in 0..<2 {
                let peer = try await RawPeer.connect(address)
                peer.send(Self.question)
                let text = try #require(await peer.nextText())
                let name = try #require(text.split(separator: #""session":""#).last?.split(separator: "\"").first)
                names.append(String(name))
                peer.call("1", "board", "addOnce()", of: round == 0 ? nil : names[0])
                #expect(try await peer.next()?.payload.result == 1, "the first result")
                peer.abort()
            }
            #expect(names[0] != names[1])
        }
    }

    @Test("a repeated hello counts like a call where calls have a rate")
    func rate() async throws {
        var limits = ServerLimits()
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 0.001, burst: 2)
        try await withPeer(limits: limits) { peer in
            for _ in 0..<3 {
                peer.send(Self.question)
                #expect(try await peer.next()?.type == "hello")
            }
            peer.send(Self.question)
            let refusal = try #require(await peer.nextText())
            #expect(refusal.hasPrefix(#"{"type":"error","payload":{"code":"rateLimited","#))
            #expect(refusal.contains(#","retryAfterMilliseconds":"#), "\(refusal)")
            peer.invoke("1", "board", "add()")
            #expect(try await peer.next()?.payload.error?.code == "rateLimited")
        }
    }

    @Test("a hello without payload, or in an older version, is malformed")
    func malformed() async throws {
        try await withPeer { (peer) async throws -> Void in
            peer.send(#"{"type":"hello"}"#)
            #expect(try await peer.next()?.type == "error")
            peer.invoke("1", "board", "add()")
            #expect(try await peer.next()?.payload.result == 1)
        }
        try await withPeer(subprotocols: []) { (peer) async throws -> Void in
            peer.send(Self.question)
            // The response belongs to no call of the client: an older version has no other kind for it.
            let answer = try #require(await peer.nextText())
            #expect(answer.contains(#""type":"response""#) && answer.contains("errorMessage"), "\(answer)")
        }
    }
}
