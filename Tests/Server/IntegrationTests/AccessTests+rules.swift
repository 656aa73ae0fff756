import Networking
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Rules of a policy: effective from the first connection, and replaceable for existing connections.
extension AccessTests {
    /// The ways a client connects to its server.
    enum ConnectionKind: CaseIterable {
        case webSocket, local, localBeforeStart
    }

    private static let everything: AccessPolicy.Authorize = { _, _, _ in true }

    private func haveStarted(_ server: TrebuchetServer, _ count: Int, of actor: String = "one") async -> Bool {
        await eventually { await server.subscriberCount(of: actor, "observeCount") == count }
    }

    @Test(
        "rules apply to a connection from its first call, and replacements take effect at once",
        arguments: ConnectionKind.allCases, [false, true])
    func rules(way: ConnectionKind, keepsGrants: Bool) async throws {
        var access = AccessPolicy(authorize: { _, actor, target in actor == "one" && target != "caller()" })
        access.cachesGrants = keepsGrants
        let server = TrebuchetServer(transport: .webSocket(port: 0), reactors: 2, access: access)
        for name in ["one", "two"] {
            await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: name)
        }
        let early = TrebuchetClient(transport: .local(server))
        if way == .localBeforeStart { try await early.connect() }
        let address = try await server.start()
        let client =
            way == .localBeforeStart
            ? early : TrebuchetClient(transport: way == .local ? .local(server) : .webSocket(port: address.port))
        try await client.connect()
        let (one, two) = (
            try client.resolve(CallerReportingActor.self, id: "one"),
            try client.resolve(CallerReportingActor.self, id: "two")
        )

        func refusal(_ call: () async throws -> Void) async -> TrebuchetError.Code? {
            do {
                try await call()
                return nil
            } catch {
                return (error as? TrebuchetError)?.code
            }
        }
        #expect(try await one.bump() == 1)
        #expect(await refusal { _ = try await one.caller() } == .unauthenticated)
        #expect(await refusal { _ = try await two.bump() } == .unauthenticated)
        let counts = await one.observeCount()
        var values = counts.makeAsyncIterator()
        #expect(await values.next() == 1)
        #expect(await haveStarted(server, 1))

        // The opposite rules: allowed calls are rejected, and rejected calls are allowed.
        await server.replaceAuthorization(cachesGrants: keepsGrants) { _, actor, _ in actor == "two" }
        #expect(await refusal { _ = try await one.bump() } == .unauthenticated)
        #expect(try await two.bump() == 1)
        #expect(try await two.caller() == nil)
        #expect(await values.next() == nil)
        guard case .failed(let reason) = counts.outcome else {
            Issue.record("a stream that the rules reject continues")
            return
        }
        #expect(reason.code == .unauthenticated && reason.message.contains("'observeCount' of actor 'one'"))
        #expect(await haveStarted(server, 0))
        var refused = await one.observeCount().makeAsyncIterator()
        #expect(await refused.next() == nil)

        await server.replaceAuthorization(Self.everything)
        #expect(try await one.bump() == 2)
        var again = await one.observeCount().makeAsyncIterator()
        #expect(await again.next() == 2)
        for client in [client, early] { await client.close() }
        await server.shutdown(drain: .zero)
    }

    @Test("streams end when changed data makes the rules reject them, and others continue")
    func changedData() async throws {
        let isOpen = Mutex(true)
        var access = AccessPolicy(authenticate: Self.keys)
        access.authorize = { caller, _, target in
            caller?.principal?.id == "ada" || !target.hasPrefix("observe") || isOpen.withLock { $0 }
        }
        access.cachesGrants = true
        let server = Mutex<TrebuchetServer?>(nil)
        try await withServer(access, { made in server.withLock { $0 = made } }) { address in
            let own = try #require(server.withLock { $0 })
            let clients = [try await connect(address, token: "ada-key"), try await connect(address, token: "bob-key")]
            // On the connection's reactor and on another one.
            var streams: [[StateStream<Int>]] = []
            for client in clients {
                let one = try client.resolve(CallerReportingActor.self, id: "one")
                let two = try client.resolve(CallerReportingActor.self, id: "two")
                streams.append([await one.observeCount(), await two.observeCount()])
            }
            for name in ["one", "two"] { #expect(await haveStarted(own, 2, of: name)) }
            isOpen.withLock { $0 = false }
            own.invalidateAuthorizationCache()
            for name in ["one", "two"] { #expect(await haveStarted(own, 1, of: name)) }
            for stream in streams[1] {
                for await _ in stream {}
                guard case .failed(let error) = stream.outcome else {
                    Issue.record("the stream ended without an error")
                    continue
                }
                #expect(error.code == .unauthorized)
            }
            #expect(streams[0].allSatisfy { $0.outcome == nil })
            for client in clients { await client.close() }
        }
        server.withLock { $0 = nil }
    }

    @Test("the rules are applied to more connections than one pass checks")
    func manyConnections() async throws {
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), reactors: 1, access: AccessPolicy(authorize: Self.everything))
        await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "one")
        var clients: [(TrebuchetClient, StateStream<Int>)] = []
        for _ in 0..<150 {
            let client = TrebuchetClient(transport: .local(server))
            try await client.connect()
            clients.append((client, await (try client.resolve(CallerReportingActor.self, id: "one")).observeCount()))
        }
        #expect(await haveStarted(server, 150))
        await server.replaceAuthorization { _, _, _ in false }
        #expect(await haveStarted(server, 0))
        for (client, _) in clients { await client.close() }
        await server.shutdown(drain: .zero)
    }

    @Test("a stream that is starting when the rules change does not start")
    func rulesAtStart() async throws {
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), reactors: 1, access: AccessPolicy(authorize: Self.everything))
        let (journal, system) = (Journal(), server.actorSystem)
        server.expose(CallerReportingActor.self, as: "mirrors/*") { _ in
            journal.record("makes it")
            await journal.wait(for: "go")
            return CallerReportingActor(actorSystem: system)
        }
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        let stream = await (try client.resolve(CallerReportingActor.self, id: "mirrors/1")).observeCount()
        await journal.wait(for: "makes it")
        await server.replaceAuthorization { _, _, _ in false }
        for await _ in stream { Issue.record("a value arrived without authorization") }
        guard case .failed(let error) = stream.outcome else {
            Issue.record("the stream ended without an error")
            return
        }
        #expect(error.code == .unauthenticated)
        journal.record("go")
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("streams end when their connection's caller becomes one that may not observe them")
    func otherCaller() async throws {
        var access = AccessPolicy(authenticate: Self.keys)
        access.authorize = { caller, _, target in target == "become(_:)" || caller?.principal?.id == "ada" }
        let server = TrebuchetServer(transport: .webSocket(port: 0), reactors: 1, access: access)
        await server.expose(AuthorizationTestActor(actorSystem: server.actorSystem), as: "turnstile")
        await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "one")
        let client = try await connect(try await server.start(), token: "ada-key")
        let stream = await (try client.resolve(CallerReportingActor.self, id: "one")).observeCount()
        var values = stream.makeAsyncIterator()
        #expect(await values.next() == 0)
        try await client.resolve(AuthorizationTestActor.self, id: "turnstile").become("bob")
        #expect(await values.next() == nil)
        guard case .failed(let error) = stream.outcome else {
            Issue.record("the stream ended without an error")
            return
        }
        #expect(error.code == .unauthorized)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a server created without rules cannot get rules later: its clients would have had none")
    func tooLate() async {
        await #expect(processExitsWith: .failure) {
            let server = TrebuchetServer(transport: .webSocket(port: 0))
            await server.replaceAuthorization { _, _, _ in false }
        }
    }
}
