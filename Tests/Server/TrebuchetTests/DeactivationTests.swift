import Relays
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Records a goodbye in `deactivate()`, at a configurable speed.
@Trebuchet
private distributed actor Player {
    @StreamedState(persisted: true) var hasLeft: Bool = false
    private let name: String
    private let journal: Journal

    init(name: String, journal: Journal, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.journal = journal
        self.actorSystem = actorSystem
    }

    func deactivate() async throws {
        journal.record("\(name) goes")
        hasLeft = true
        if name.hasSuffix("stubborn") { throw Closed(reason: "no") }
        if name.hasSuffix("slow") { await journal.wait(for: "never") }
    }

    distributed func play() {}
    distributed func hold() async {
        journal.record("\(name) holds")
        await journal.wait(for: "\(name) may end")
        journal.record("\(name) ends")
    }
}

/// `deactivate()` during shutdown.
@Suite(.timeLimit(.minutes(5))) struct DeactivationTests {
    private let journal = Journal()
    private let log = Journal()
    private let store = GatedStore()
    private let clock = TestTime()

    private func server() async -> TrebuchetServer {
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), clock: clock, store: store, log: ConsoleLog { [log] in log.record($0) })
        let (system, journal) = (server.actorSystem, journal)
        server.expose(Player.self, as: "players/*") { Player(name: $0, journal: journal, actorSystem: system) }
        server.expose(Player.self, as: "idle/*", idle: .seconds(300)) {
            Player(name: $0, journal: journal, actorSystem: system)
        }
        await server.expose(Player(name: "fixed", journal: journal, actorSystem: system), as: "fixed")
        return server
    }

    private func play(_ names: [String], at server: TrebuchetServer) async throws {
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        for name in names { try await client.resolve(Player.self, id: name).play() }
        await client.close()
    }

    @Test("shutdown runs deactivate() once for each on-demand actor, and its changes are persisted")
    func end() async throws {
        let server = await server()
        try await server.start()
        try await play(["players/1", "idle/2", "players/stubborn", "fixed"], at: server)
        await server.shutdown(drain: .zero)
        #expect(journal.entries.sorted() == ["idle/2 goes", "players/1 goes", "players/stubborn goes"])
        for name in ["players/1", "idle/2", "players/stubborn"] {
            #expect(try await store.text("\(name).hasLeft") == "true", "\(name)")
        }
        #expect(log.entries.count { $0.contains("players/stubborn") && $0.contains("deactivate()") } == 1)
        #expect(log.entries.count == 1, "\(log.entries)")
        await server.shutdown(drain: .zero)
        #expect(journal.entries.count == 3)
    }

    @Test("deactivate() runs after the in-flight calls")
    func behindCalls() async throws {
        let server = await server()
        try await server.start()
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        let call = Task { try await client.resolve(Player.self, id: "players/1").hold() }
        await journal.wait(for: "players/1 holds")
        let ending = Task { await server.shutdown(drain: .seconds(3_600)) }
        for await state in client.connectionState.stream where state == .draining { break }
        journal.record("players/1 may end")
        try await call.value
        await ending.value
        #expect(journal.entries.suffix(2) == ["players/1 ends", "players/1 goes"])
        await client.close()
    }

    @Test("shutdown waits at most five seconds for a deactivate(), and all of them run concurrently")
    func slow() async throws {
        let server = await server()
        try await server.start()
        try await play(["players/slow", "idle/slow", "players/1"], at: server)
        let hasEnded = Journal()
        let ending = Task {
            await server.shutdown(drain: .zero)
            hasEnded.record("ended")
        }
        for name in ["players/slow", "idle/slow", "players/1"] { await journal.wait(for: "\(name) goes") }
        #expect(hasEnded.entries.isEmpty)
        // Timers are set after the start; the time of both advances together.
        while hasEnded.entries.isEmpty { await clock.advance(by: .seconds(1)) }
        await ending.value
        #expect(log.entries.count { $0.contains("took longer than 5") } == 2, "\(log.entries)")
    }

    @Test("deactivate() does not run when the server is killed")
    func killed() async throws {
        let server = await server()
        try await server.start()
        try await play(["players/1"], at: server)
        await server.cut()
        #expect(journal.entries.isEmpty)
    }

    @Test("an actor that waits for its last call is deactivated also when the call takes long")
    func waitsForLastCall() async throws {
        let server = await server()
        try await server.start()
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        let call = Task { try await client.resolve(Player.self, id: "players/1").hold() }
        await journal.wait(for: "players/1 holds")
        let player = try #require(try await server.actor(Player.self, named: "players/1"))
        let (asked, outcome) = (StateRelay(0), Journal())
        let going = Task {
            await server.deactivateActor(player, named: "players/1") { _ in
                asked.update { $0 += 1 }
                return true
            } _: { _, isDeactivated in
                outcome.record("\(isDeactivated)")
            }
        }
        // Far longer than a thread needs for a thousand checks.
        let start = ContinuousClock.now
        for await count in asked.stream where count > 40 && start.duration(to: .now) > .milliseconds(100) { break }
        journal.record("players/1 may end")
        try await call.value
        await going.value
        #expect(outcome.entries == ["true"])
        await client.close()
        await server.shutdown(drain: .zero)
    }
}
