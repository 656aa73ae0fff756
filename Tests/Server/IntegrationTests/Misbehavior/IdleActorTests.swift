import CAllocationCount
import Foundation
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Activation and deactivation of on-demand actors.
@Suite(.timeLimit(.minutes(5))) struct IdleActorTests {
    private func withLobbies(
        discarding: Bool = false, limits: ServerLimits = ServerLimits(), link: TestLink = .webSocket,
        _ body: (TrebuchetClient, TrebuchetServer, Journal) async throws -> Void
    ) async throws {
        let journal = Journal()
        try await withTestServer(link: link, reactors: 2, limits: limits) { server in
            let system = server.actorSystem
            server.expose(ActivationTestActor.self, as: "lobbies/*", idle: .seconds(300), discarding: discarding) {
                name in
                journal.record("makes \(name)")
                return ActivationTestActor(journal: journal, name: name, actorSystem: system)
            }
        } body: { client, server in
            try await body(client, server, journal)
        }
    }

    @Test("an actor without calls and streams is deactivated after its idle time, and the next call activates another")
    func deactivatedWhenIdle() async throws {
        try await withLobbies { (client, server, journal) async throws -> Void in
            let lobby = try client.resolve(ActivationTestActor.self, id: "lobbies/1")
            #expect(try await lobby.look() == 0)
            // The first check may find that it was used since the previous check: its idle time starts then.
            for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
            await journal.wait(for: "lobbies/1 goes")
            #expect(await eventually { server.actorCount == 0 })
            #expect(try await lobby.look() == 0)
            #expect(journal.entries == ["makes lobbies/1", "lobbies/1 goes", "makes lobbies/1"])
        }
    }

    @Test("a changed state without a store keeps its actor active, unless it is transient", arguments: [false, true])
    func changedState(discarding: Bool) async throws {
        try await withLobbies(discarding: discarding) { (client, server, journal) async throws -> Void in
            let lobby = try client.resolve(ActivationTestActor.self, id: "lobbies/1")
            #expect(try await lobby.enter() == 1)
            for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
            if discarding { await journal.wait(for: "lobbies/1 goes") }
            #expect(try await lobby.look() == (discarding ? 0 : 1))
        }
    }

    @Test("a persisted state keeps its actor active without a store; with one it is deactivated and restored")
    func persisted() async throws {
        for store in [nil, MemoryStore()] {
            let log = Mutex<[String]>([])
            let server = TrebuchetServer(
                transport: .webSocket(host: "127.0.0.1", port: 0), store: store,
                log: ConsoleLog { line in log.withLock { $0.append(line) } })
            let system = server.actorSystem
            let made = Journal()
            server.expose(InvocationCounter.self, as: "tallies/*", idle: .seconds(300)) { name in
                made.record(name)
                return InvocationCounter(actorSystem: system)
            }
            let client = TrebuchetClient(transport: .local(server))
            try await client.connect()
            let keeper = try client.resolve(InvocationCounter.self, id: "tallies/1")
            #expect(try await keeper.add() == 1)
            for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
            if store != nil { #expect(await eventually { server.actorCount == 0 }) }
            #expect(try await keeper.add() == 2)
            #expect(made.entries.count == (store == nil ? 1 : 2))
            // One line for each type in a process.
            #expect(log.withLock { $0.count } <= 1)
            await client.close()
            await server.shutdown(drain: .zero)
        }
    }

    @Test("a subscriber keeps its actor active; a later subscriber finds another epoch")
    func observed() async throws {
        try await withLobbies { (client, server, journal) async throws -> Void in
            let peer = try await RawPeer.connect(try #require(server.address))
            peer.invoke("1", "lobbies/1", "observeVisits")
            let start = try #require(await peer.nextText())
            _ = await peer.nextText()
            for _ in 0..<3 { await server.advanceIdleTime(by: .seconds(301)) }
            #expect(journal.entries == ["makes lobbies/1"])
            peer.send(#"{"type":"streamEnd","payload":{"streamID":"s1"}}"#)
            #expect(try await peer.next()?.type == "streamEnd")
            for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
            await journal.wait(for: "lobbies/1 goes")
            peer.invoke("2", "lobbies/1", "observeVisits")
            let again = try #require(await peer.nextText())
            #expect(epoch(start) != nil && epoch(start) != epoch(again))
            peer.close()
        }
    }

    private func epoch(_ message: String) -> Substring? {
        message.firstRange(of: #""epoch":""#).map { message[$0.upperBound...].prefix(8) }
    }

    @Test("calls that arrive during a deactivation wait for the next activation")
    func waiting() async throws {
        try await withLobbies { (client, server, journal) async throws -> Void in
            let lobby = try client.resolve(ActivationTestActor.self, id: "lobbies/slow")
            _ = try await lobby.look()
            for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
            await journal.wait(for: "lobbies/slow goes")
            async let next = lobby.look()
            #expect(journal.entries.filter { $0.hasPrefix("makes") }.count == 1)
            journal.record("lobbies/slow may go")
            #expect(try await next == 0)
            #expect(
                journal.entries
                    == ["makes lobbies/slow", "lobbies/slow goes", "lobbies/slow may go", "makes lobbies/slow"])
        }
    }

    @Test("an actor whose deactivate() throws is deactivated, and the log names it")
    func stubborn() async throws {
        let log = Mutex<[String]>([])
        let journal = Journal()
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0),
            log: ConsoleLog { line in log.withLock { $0.append(line) } })
        let system = server.actorSystem
        server.expose(ActivationTestActor.self, as: "lobbies/*", idle: .seconds(300)) {
            ActivationTestActor(journal: journal, name: $0, actorSystem: system)
        }
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        _ = try await client.resolve(ActivationTestActor.self, id: "lobbies/stubborn").look()
        for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
        #expect(await eventually { log.withLock { $0.first?.contains("lobbies/stubborn") == true } })
        #expect(try await client.resolve(ActivationTestActor.self, id: "lobbies/stubborn").look() == 0)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test(
        "one client has a quota of on-demand actors, other clients still activate theirs, and all are deactivated when idle"
    )
    func share() async throws {
        var limits = ServerLimits()
        limits.activatedActors.total = 150
        limits.activatedActors.perConnection = 100
        try await withLobbies(limits: limits, link: .local) { (client, server, _) async throws -> Void in
            var refusals: Set<String> = []
            for number in 0..<110 {
                do {
                    _ = try await client.resolve(ActivationTestActor.self, id: "lobbies/\(number)").look()
                } catch let error as TrebuchetError {
                    #expect(error.code == .rateLimited)
                    refusals.insert(error.message)
                }
            }
            #expect(
                refusals == [
                    "quota exceeded: this connection has 100 activated actors (ServerLimits.activatedActors.perConnection); "
                        + "retry when some have ended"
                ])
            let other = TrebuchetClient(transport: .local(server))
            try await other.connect()
            #expect(try await other.resolve(ActivationTestActor.self, id: "lobbies/other").look() == 0)
            #expect(try await other.resolve(ActivationTestActor.self, id: "lobbies/7").look() == 0)
            let haveGone = await eventually {
                await server.advanceIdleTime(by: .seconds(301))
                return server.actorCount == 0
            }
            #expect(haveGone)
            #expect(
                await eventually {
                    (try? await client.resolve(ActivationTestActor.self, id: "lobbies/109").look()) == 0
                })
            await other.close()
        }
    }

    /// Measures the whole process, so it runs only where no other test does: `scripts/test` has a part for that.
    @Test(
        "an idle actor of ten methods and a state costs at most 1.5 KB",
        .enabled(if: ProcessInfo.processInfo.environment["TREBUCHET_ALONE"] == "1"))
    func memory() async throws {
        var limits = ServerLimits()
        limits.activatedActors.perConnection = 100_000
        try await withTestServer(link: .local, reactors: 1, limits: limits) { server in
            let system = server.actorSystem
            server.expose(OccupiedActors.self, as: "halls/*", idle: .seconds(300)) { _ in
                OccupiedActors(actorSystem: system)
            }
        } body: { client, _ in
            func make(_ range: Range<Int>) async throws {
                for number in range { _ = try await client.resolve(OccupiedActors.self, id: "halls/\(number)").a() }
            }
            try await make(0..<2_048)
            let before = allocated_bytes()
            // Four times as many, so that table growth is in proportion.
            try await make(2_048..<8_192)
            let measured = (allocated_bytes() - before) / 6_144
            print("bytes for an idle actor: \(measured)")
            #expect(measured > 200 && measured <= 1_536)
        }
    }
}

@Trebuchet
distributed actor InvocationCounter {
    @StreamedState(persisted: true) var count: Int = 0

    distributed func add() -> Int {
        count += 1
        return count
    }
}

/// Ten methods and one state.
@Trebuchet
distributed actor OccupiedActors {
    struct State: Codable, Sendable { var count = 0 }
    @StreamedState var state: State = State()

    distributed func a() -> Int { 1 }
    distributed func b() -> Int { 2 }
    distributed func c() -> Int { 3 }
    distributed func d() -> Int { 4 }
    distributed func e() -> Int { 5 }
    distributed func f() -> Int { 6 }
    distributed func g() -> Int { 7 }
    distributed func h() -> Int { 8 }
    distributed func i() -> Int { 9 }
    distributed func j() { state.count += 1 }
}
