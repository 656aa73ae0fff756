import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Actors of clients whose connection breaks or that leave.
@Suite(.timeLimit(.minutes(5))) struct ClientActorHostTests {
    /// A host, a client behind a link that the test can cut, and the client's actor.
    private struct Scene {
        let server: TrebuchetServer
        let link: FaultyLink
        let client: TrebuchetClient
        /// Called without the link.
        let host: ClientReferenceHolder
        /// The server's record of calls.
        let calls = Journal()
        let received = Journal()
        let clientActor: CalledClientActor
        let operatorClient: TrebuchetClient

        init(limits: ServerLimits = ServerLimits()) async throws {
            server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), limits: limits)
            await server.expose(ClientReferenceHolder(journal: calls, actorSystem: server.actorSystem), as: "host")
            let address = try await server.start()
            link = try FaultyLink(to: address, seed: 1)
            var options = TrebuchetClient.Options()
            options.reconnect.initialDelay = .milliseconds(5)
            options.reconnect.maximumDelay = .milliseconds(50)
            client = TrebuchetClient(
                transport: .webSocket(host: link.address.host, port: link.address.port), options: options)
            try await client.connect()
            clientActor = CalledClientActor(journal: received, actorSystem: client.actorSystem)
            try await client.resolve(ClientReferenceHolder.self, id: "host").enter(clientActor)
            operatorClient = TrebuchetClient(transport: .local(server))
            try await operatorClient.connect()
            host = try operatorClient.resolve(ClientReferenceHolder.self, id: "host")
        }

        func end() async {
            await operatorClient.close()
            await client.close()
            await link.close()
            await server.shutdown(drain: .zero)
        }
    }

    @Test(
        "a reference remains valid when its client reconnects",
        arguments: [FaultyLink.Cut.inOrder, .reset, .halfOpen(.seconds(30))])
    func back(cut: FaultyLink.Cut) async throws {
        let scene = try await Scene()
        for count in 1...3 {
            var outcome = try await scene.host.tell("a")
            // A call may have been sent before the cut was noticed.
            while outcome.first == "unknownOutcome" { outcome = try await scene.host.tell("a") }
            #expect(outcome == ["\(count)"])
            await scene.link.disconnectAll(cut)
        }
        #expect(scene.server.clientActorCount == 1)
        #expect(scene.server.hostingClientCount == 1)
        await scene.end()
    }

    @Test("a call waits while the client is disconnected, and is sent when it reconnects")
    func waits() async throws {
        let scene = try await Scene()
        let call = try await scene.link.refuseConnections {
            await scene.link.disconnectAll()
            #expect(await eventually { await scene.server.connectionCount == 1 })
            let call = Task { try await scene.host.tell("a") }
            await scene.calls.wait(for: "calls")
            #expect(await eventually { scene.server.callsToClientsCount == 1 })
            return call
        }
        #expect(try await call.value == ["1"])
        #expect(scene.received.entries == ["a"])
        await scene.end()
    }

    @Test("a call waits for a disconnected client no longer than its deadline")
    func late() async throws {
        var limits = ServerLimits()
        limits.clientCalls.timeout = .milliseconds(100)
        let scene = try await Scene(limits: limits)
        try await scene.link.refuseConnections {
            await scene.link.disconnectAll()
            #expect(await eventually { await scene.server.connectionCount == 1 })
            let outcome = try await scene.host.tell("a")
            #expect(outcome.first == "timeout")
            #expect(
                outcome.last?.contains("ServerLimits.clientCalls.timeout): the client is disconnected") == true,
                "\(outcome)")
        }
        #expect(scene.server.callsToClientsCount == 0)
        #expect(scene.received.entries == [])
        await scene.end()
    }

    @Test("a sent call ends with unknownOutcome when the connection breaks, and is cancelled in the client")
    func broken() async throws {
        let scene = try await Scene()
        let call = Task { try await scene.host.askToWait() }
        await scene.received.wait(for: "waits")
        await scene.link.disconnectAll()
        #expect(try await call.value.first == "unknownOutcome")
        #expect(try await scene.host.tell("a") == ["2"])
        await scene.end()
    }

    @Test("a client that stays away too long is given up: its calls end as unavailable, and its quota is released")
    func grace() async throws {
        var limits = ServerLimits()
        limits.clientActors.reconnectTime = .milliseconds(100)
        let scene = try await Scene(limits: limits)
        try await scene.link.refuseConnections {
            await scene.link.disconnectAll()
            #expect(await eventually { await scene.server.connectionCount == 1 })
            for _ in 0..<2 {
                let outcome = try await scene.host.tell("a")
                #expect(outcome.first == "unavailable")
                #expect(outcome.last?.contains("ServerLimits.clientActors.reconnectTime") == true, "\(outcome)")
            }
            #expect(scene.server.clientActorCount == 0)
            #expect(scene.server.hostingClientCount == 0)
        }
        // It reconnected too late: its next export is another reference.
        try await scene.client.resolve(ClientReferenceHolder.self, id: "host").enter(scene.clientActor)
        #expect(try await scene.host.tell("b") == ["1"])
        await scene.end()
    }

    @Test("a server that is shut down releases the actors of its clients")
    func shutdown() async throws {
        let scene = try await Scene()
        let call = Task { try await scene.host.askToWait() }
        await scene.received.wait(for: "waits")
        await scene.server.shutdown(drain: .zero)
        _ = try? await call.value
        #expect(await eventually { scene.server.hostingClientCount == 0 })
        // The waiting method retains its reference until its task ends.
        #expect(await eventually { scene.server.clientActorCount == 0 })
        #expect(scene.server.callsToClientsCount == 0)
        await scene.end()
    }

    @Test("thousands of references of departed clients are released after the grace period")
    func thousands() async throws {
        var limits = ServerLimits()
        limits.clientActors.reconnectTime = .milliseconds(100)
        try await withTestServer(limits: limits) { server in
            await server.expose(ClientReferenceHolder(actorSystem: server.actorSystem), as: "host")
        } body: { _, server in
            let address = try #require(server.address)
            for number in 0..<5 {
                let peer = try await RawPeer.connect(address)
                peer.introduce("thousands-of-references-\(number)")
                _ = try await peer.next()
                let references = (0..<1_000).map { #"{"client":"v\#($0)"}"# }.joined(separator: ",")
                peer.invoke("1", "host", "enterAll(_:)", "[[\(references)]]")
                #expect(try await peer.next()?.payload.error == nil)
                peer.abort()
            }
            #expect(await eventually { server.clientActorCount == 0 })
            #expect(server.hostingClientCount == 0)
            #expect(await eventually { server.bufferedBytes == 0 })
        }
    }
}

extension RawPeer {
    /// Sends the client's identity.
    func introduce(_ identity: String) { send(#"{"type":"hello","payload":{"client":"\#(identity)"}}"#) }
}
