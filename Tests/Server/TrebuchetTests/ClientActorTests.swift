import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Actors that live in a client and are called by its server.
@Suite(.timeLimit(.minutes(5))) struct ClientActorTests {
    private func withHost(
        _ link: TestLink, limits: ServerLimits = ServerLimits(), options: TrebuchetClient.Options = .init(),
        _ body: (InProcessReferenceHolder, TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(link: link, limits: limits, options: options) { server in
            await server.expose(InProcessReferenceHolder(actorSystem: server.actorSystem), as: "host")
        } body: { client, server in
            try await body(client.resolve(InProcessReferenceHolder.self, id: "host"), client, server)
        }
    }

    @Test("a server calls an actor that a client has passed", arguments: TestLink.allCases)
    func call(link: TestLink) async throws {
        try await withHost(link) { host, client, server in
            let clientActor = InProcessClientActor("Ada", actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            #expect(try await host.tell("a") == [1])
            #expect(try await host.tellLater("b") == [2])
            #expect(try await clientActor.receive("c") == 3)
            #expect(server.clientActorCount == 1)
            #expect(try await host.outcome(of: "isServer") == ["true"])
        }
    }

    @Test(
        "a reference that arrives repeatedly or inside a value is one reference, counted once until it is released",
        arguments: TestLink.allCases)
    func counted(link: TestLink) async throws {
        try await withHost(link) { host, client, server in
            let clientActor = InProcessClientActor("Ada", actorSystem: client.actorSystem)
            let name = try await host.enter(clientActor)
            #expect(try await host.enter(clientActor) == name)
            try await host.enterAll([clientActor, clientActor])
            #expect(try await host.areSame())
            #expect(try await host.tell("a") == [1, 2, 3, 4])
            #expect(server.clientActorCount == 1)
            #expect(server.hostingClientCount == 1)
            try await host.leaveAll()
            #expect(await eventually { server.clientActorCount == 0 })
            _ = try await host.enter(clientActor)
            #expect(try await host.tell("b") == [5])
        }
    }

    @Test(
        "registered errors of a client actor arrive with their type, other errors with their text",
        arguments: TestLink.allCases)
    func errors(link: TestLink) async throws {
        try await withHost(link) { host, client, server in
            let clientActor = InProcessClientActor("Ada", actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            #expect(try await host.outcome(of: "refuse") == ["BankError", "insufficient(missing: 7)"])
            let other = try await host.outcome(of: "explode")
            #expect(other.first == "application")
            #expect(other.last?.contains("42") == true, "\(other)")
        }
    }

    @Test("an actor returned by a client actor can be called too", arguments: TestLink.allCases)
    func returned(link: TestLink) async throws {
        try await withHost(link) { host, client, _ in
            let clientActor = InProcessClientActor("Ada", actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            #expect(try await host.outcome(of: "friend") == ["1"])
        }
    }

    @Test("a client actor that was released is not found", arguments: TestLink.allCases)
    func releasedActor(link: TestLink) async throws {
        try await withHost(link) { host, client, _ in
            _ = try await host.enter(InProcessClientActor("Ada", actorSystem: client.actorSystem))
            #expect(try await host.outcome(of: "receive").first == "actorNotFound")
        }
    }

    @Test("a client answers calls only to actors that it has passed", arguments: TestLink.allCases)
    func onlyHanded(link: TestLink) async throws {
        try await withHost(link) { host, client, _ in
            let (passed, unpassed) = (
                InProcessClientActor("Ada", actorSystem: client.actorSystem),
                InProcessClientActor("Bob", actorSystem: client.actorSystem)
            )
            _ = try await host.enter(passed)
            for name in [unpassed.id.id, "host", "nobody"] {
                // A server that has guessed the name would send this.
                let forged = Array(#"{"client":"\#(name)"}"#.utf8)
                _ = try await client.call(actor: "host", target: "enter(_:)", arguments: [forged])
                let outcome = try await host.outcome(of: "receive")
                #expect(outcome.first == "actorNotFound")
                #expect(outcome.last?.contains("that this server may call") == true, "\(outcome)")
            }
            #expect(try await unpassed.receive("a") == 1)
        }
    }

    @Test("a call that exceeds its time limit ends, and is cancelled in the client", arguments: TestLink.allCases)
    func late(link: TestLink) async throws {
        var limits = ServerLimits()
        limits.clientCalls.timeout = .milliseconds(100)
        try await withHost(link, limits: limits) { host, client, server in
            let journal = Journal()
            let clientActor = InProcessClientActor("Ada", journal: journal, actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            let outcome = try await host.outcome(of: "wait")
            #expect(outcome.first == "timeout")
            #expect(outcome.last?.contains("ServerLimits.clientCalls.timeout") == true, "\(outcome)")
            await journal.wait(for: "cancelled")
            #expect(server.callsToClientsCount == 0)
            #expect(try await host.outcome(of: "wait", milliseconds: 50).first == "timeout", "its own deadline")
        }
    }

    @Test("a cancelled call is cancelled in the client", arguments: TestLink.allCases)
    func cancelled(link: TestLink) async throws {
        try await withHost(link) { host, client, server in
            let journal = Journal()
            let clientActor = InProcessClientActor("Ada", journal: journal, actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            let call = Task { try await host.outcome(of: "wait") }
            await journal.wait(for: "waits")
            call.cancel()
            await journal.wait(for: "cancelled")
            _ = try? await call.value
            #expect(await eventually { server.callsToClientsCount == 0 })
        }
    }

    @Test(
        "observing a client actor or calling its @Idempotent methods fails with a clear error",
        arguments: TestLink.allCases)
    func unsupported(link: TestLink) async throws {
        try await withHost(link) { host, client, _ in
            let clientActor = InProcessClientActor("Ada", actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            for (call, text) in [("observe", "cannot be observed"), ("once", "@Idempotent")] {
                let outcome = try await host.outcome(of: call)
                #expect(outcome.first == "methodNotFound")
                #expect(outcome.last?.contains(text) == true, "\(outcome)")
            }
        }
    }

    @Test("a reference to a client actor is not forwarded to other clients", arguments: TestLink.allCases)
    func notSentOn(link: TestLink) async throws {
        try await withHost(link) { host, client, _ in
            let clientActor = InProcessClientActor("Ada", actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            let error = await #expect(throws: TrebuchetError.self) { _ = try await host.first() }
            #expect(
                error?.message.contains("only the server with the reference can call it") == true,
                "\(error?.message ?? "")")
        }
    }

    @Test(
        "when the client closes, calls to its actors end as unavailable at once, and its memory is released",
        arguments: TestLink.allCases)
    func closed(link: TestLink) async throws {
        try await withHost(link) { host, client, server in
            let guest = try await other(client, of: server, link)
            let journal = Journal()
            let clientActor = InProcessClientActor("Ada", journal: journal, actorSystem: guest.actorSystem)
            _ = try await guest.resolve(InProcessReferenceHolder.self, id: "host").enter(clientActor)
            let under = Task { try await host.outcome(of: "wait") }
            await journal.wait(for: "waits")
            await guest.close()
            #expect(try await under.value.first == "unknownOutcome")
            await journal.wait(for: "cancelled")
            let outcome = try await host.outcome(of: "receive")
            #expect(outcome.first == "unavailable")
            #expect(outcome.last?.contains("closed") == true, "\(outcome)")
            #expect(await eventually { server.hostingClientCount == 0 })
            #expect(server.clientActorCount == 0)
        }
    }

    private func other(
        _ client: TrebuchetClient, of server: TrebuchetServer, _ link: TestLink
    ) async throws -> TrebuchetClient {
        let address = try #require(server.address)
        let other = TrebuchetClient(
            transport: link == .local ? .local(server) : .webSocket(host: address.host, port: address.port))
        try await other.connect()
        return other
    }

    @Test("a client bounds its concurrent calls from the server", arguments: TestLink.allCases)
    func callsFromServer(link: TestLink) async throws {
        var options = TrebuchetClient.Options()
        options.callsFromServer = 1
        try await withHost(link, options: options) { host, client, _ in
            let journal = Journal()
            let clientActor = InProcessClientActor("Ada", journal: journal, actorSystem: client.actorSystem)
            _ = try await host.enter(clientActor)
            let waiting = Task { try await host.outcome(of: "wait") }
            await journal.wait(for: "waits")
            let outcome = try await host.outcome(of: "receive")
            #expect(outcome.first == "rateLimited")
            #expect(outcome.last?.contains("callsFromServer") == true, "\(outcome)")
            waiting.cancel()
            _ = try? await waiting.value
            #expect(await eventually { try! await host.outcome(of: "receive") == ["1"] })
        }
    }
}
