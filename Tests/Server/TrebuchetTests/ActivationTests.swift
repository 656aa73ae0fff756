import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Records its activation, which fails as often as its name says: `guests/fails-2`.
@Trebuchet
private distributed actor Guest {
    @StreamedState(persisted: true) var activations: Int = 0
    private let name: String
    private let journal: Journal
    private let failures: Mutex<Int>

    init(name: String, journal: Journal, failures: Int = 0, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.journal = journal
        self.failures = Mutex(failures)
        self.actorSystem = actorSystem
    }

    func activate() async throws {
        activations += 1
        journal.record("\(name) activates")
        if name.hasSuffix("slow") { await journal.wait(for: "\(name) may go on") }
        if name.hasSuffix("endless") { await journal.wait(for: "never") }
        let mustFail = failures.withLock { failures in
            failures -= 1
            return failures >= 0
        }
        if mustFail { throw TrebuchetError(.unavailable, "no invitation") }
    }

    distributed func count() -> Int {
        journal.record("\(name) counts")
        return activations
    }
}

/// `activate()`.
@Suite(.timeLimit(.minutes(5))) struct ActivationTests {
    private let journal = Journal()
    private let log = Journal()
    private let store = GatedStore()
    private let clock = TestTime()
    private let failures = Failures()

    /// The number of activations that fail.
    private final class Failures: Sendable {
        private let count = Mutex(0)

        func set(_ number: Int) { count.withLock { $0 = number } }

        /// Returns 1 for each of the first activations, and 0 for the others.
        func next() -> Int {
            count.withLock { count in
                guard count > 0 else { return 0 }
                count -= 1
                return 1
            }
        }
    }

    private func withClient(_ body: (TrebuchetClient, TrebuchetServer) async throws -> Void) async throws {
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), clock: clock, store: store, log: ConsoleLog { [log] in log.record($0) })
        let (system, journal, failures) = (server.actorSystem, journal, failures)
        server.expose(Guest.self, as: "guests/*", idle: .seconds(300)) { name in
            Guest(name: name, journal: journal, failures: failures.next(), actorSystem: system)
        }
        try await server.start()
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        try await body(client, server)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("activate() runs once after the state is loaded, and calls and streams wait for it")
    func once() async throws {
        try await store.put("7", "guests/slow.activations")
        try await withClient { client, _ in
            let guest = try client.resolve(Guest.self, id: "guests/slow")
            let calls = (0..<3).map { _ in Task { try await guest.count() } }
            let stream = Task { await guest.observeActivations().first { _ in true } }
            await journal.wait(for: "guests/slow activates")
            journal.record("guests/slow may go on")
            for call in calls { #expect(try await call.value == 8) }
            #expect(await stream.value == 8)
            #expect(try await guest.count() == 8)
        }
        #expect(journal.entries.count { $0 == "guests/slow activates" } == 1)
        #expect(try #require(journal.entries.firstIndex(of: "guests/slow may go on")) == 1)
        #expect(try await store.text("guests/slow.activations") == "8")
        #expect(log.entries.isEmpty, "\(log.entries)")
    }

    @Test("an error of activate() fails the waiting calls and is logged, and the next call activates another actor")
    func failure() async throws {
        failures.set(1)
        try await withClient { client, server in
            let guest = try client.resolve(Guest.self, id: "guests/1")
            let error = await #expect(throws: TrebuchetError.self) { try await guest.count() }
            #expect(error?.code == .unavailable)
            #expect(error?.message == "activate() of actor 'guests/1' failed: no invitation")
            // The changes of the failed activation are kept, as those of a method that throws.
            #expect(try await guest.count() == 2)
        }
        #expect(journal.entries.count { $0 == "guests/1 activates" } == 2)
        #expect(log.entries.count { $0.contains("activate() of actor 'guests/1' failed") } == 1, "\(log.entries)")
    }

    @Test("an actor that is exposed by its name is activated by expose(), and after an error by the next call")
    func exposed() async throws {
        try await withClient { (client, server) async throws -> Void in
            let system = server.actorSystem
            let guest = Guest(name: "fixed", journal: journal, actorSystem: system)
            #expect(await server.expose(guest, as: "fixed") == nil)
            #expect(journal.entries == ["fixed activates"])
            #expect(try await client.resolve(Guest.self, id: "fixed").count() == 1)
            let late = Guest(name: "late", journal: journal, failures: 1, actorSystem: system)
            let error = await server.expose(late, as: "late")
            #expect(error?.message == "activate() of actor 'late' failed: no invitation")
            #expect(try await client.resolve(Guest.self, id: "late").count() == 2)
            #expect(await server.expose(late, as: "second name") == nil)
            #expect(journal.entries.count { $0 == "late activates" } == 2)
        }
    }

    @Test("activate() takes at most 30 seconds")
    func endless() async throws {
        try await withClient { client, _ in
            let start = clock.now
            let call = Task { try await client.resolve(Guest.self, id: "guests/endless").count() }
            await journal.wait(for: "guests/endless activates")
            // The test clock waits for an activation in progress, for some seconds each time, and runs on: on a busy machine
            // the limit may have passed already.
            await clock.advance(by: .seconds(10))
            let early = log.entries
            if clock.now - start < 30_000_000_000 { #expect(early.isEmpty) }
            await clock.advance(by: .seconds(21))
            let error = await #expect(throws: TrebuchetError.self) { try await call.value }
            #expect(error?.code == .timeout)
            #expect(error?.message.contains("activate() of actor 'guests/endless' failed") == true)
        }
    }
}
