import Foundation
import Synchronization
import TestSupport
import Testing
import TrebuchetActors
import TrebuchetTesting

@testable import Trebuchet

/// An auction that an alarm closes.
@Trebuchet
private distributed actor Auction {
    struct Closing: Codable, Sendable { var winner: String }

    @StreamedState(persisted: true) var bids: Int = 0
    private let name: String
    private let journal: Journal
    /// The number of alarms that fail.
    private let failures: Mutex<Int>

    init(name: String, journal: Journal, failures: Int = 0, actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.journal = journal
        self.failures = Mutex(failures)
        self.actorSystem = actorSystem
    }

    /// A synchronous method: the alarm and the state are in one write.
    distributed func open(_ alarm: String, inSeconds seconds: Double) throws {
        bids += 1
        try alarms.set(alarm, at: Date(timeIntervalSinceNow: seconds), payload: Closing(winner: "ada"))
    }

    distributed func repeatAlarm(_ alarm: String, everySeconds seconds: Int) async throws {
        try await alarms.set(alarm, at: Date(timeIntervalSinceNow: Double(seconds)), every: .seconds(seconds))
        journal.record("\(name) has set \(alarm)")
    }

    distributed func cancel(_ alarm: String) throws -> Bool { try alarms.cancel(alarm) }
    distributed func pending() -> [String] { alarms.pending.map { "\($0.name) \($0.attempt)" } }
    distributed func count() -> Int { bids }

    func alarm(_ alarm: Alarm) async throws {
        let mustFail = failures.withLock { failures in
            failures -= 1
            return failures >= 0
        }
        bids += 100
        let winner = try? alarm.payload(as: Closing.self).winner
        journal.record("\(name): \(alarm.name) \(alarm.attempt) \(winner ?? "-") \(Caller.current?.isServer == true)")
        if mustFail { throw TrebuchetError(.unavailable, "the hammer is missing") }
        if alarm.name == "again" { try await alarms.set("again", at: Date(timeIntervalSinceNow: 1_000_000)) }
        if alarm.name == "endless" { await journal.wait(for: "never") }
    }
}

/// An actor without `alarm(_:)`.
@Trebuchet
private distributed actor Silent {
    @StreamedState(persisted: true) var count: Int = 0

    distributed func set() throws { try alarms.set("a", at: Date()) }
}

/// Durable alarms at one server. The test clock advances the time of day too.
@Suite(.timeLimit(.minutes(5))) struct AlarmTests {
    private let journal = Journal()
    private let log = Journal()
    private let store = GatedStore()
    private let clock = TestTime()

    private func server(
        limits: ServerLimits = ServerLimits(), failures: Int = 0, store: (any StateStore)?
    ) -> TrebuchetServer {
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), clock: clock, limits: limits, store: store,
            log: ConsoleLog { [log] in log.record($0) })
        let (system, journal) = (server.actorSystem, journal)
        server.expose(Auction.self, as: "auctions/*", idle: .seconds(300)) { name in
            Auction(name: name, journal: journal, failures: failures, actorSystem: system)
        }
        server.expose(Silent.self, as: "silent/*") { _ in Silent(actorSystem: system) }
        return server
    }

    /// Starts a server and connects a client; cuts the server at the end as a crash would.
    private func withServer(
        limits: ServerLimits = ServerLimits(), failures: Int = 0, shift: Duration = .zero,
        _ body: (TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        let server = server(limits: limits, failures: failures, store: store)
        await server.shiftAlarmClock(by: shift)
        try await server.start()
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        try await body(client, server)
        await client.close()
        await server.cut()
    }

    private func keys(_ namespace: String) async throws -> [String] {
        try await store.list(namespace).map(\.key.name)
    }

    /// Returns after all alarms that are due were delivered and their rows were removed.
    private func expectRows(_ count: Int) async throws {
        #expect(try await eventually { try await keys("alarmTimes").count == count })
    }

    @Test("an alarm wakes an actor that is not active, at its time, with its payload, as the server")
    func wakes() async throws {
        try await withServer { client, server in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            try await auction.open("close", inSeconds: 10_000)
            for _ in 0..<2 { await server.advanceIdleTime(by: .seconds(301)) }
            #expect(await eventually { server.actorCount == 0 })
            await clock.advance(by: .seconds(9_990))
            #expect(journal.entries.isEmpty)
            await clock.advance(by: .seconds(60))
            await journal.wait(for: "auctions/1: close 1 ada true")
            try await expectRows(0)
            #expect(try await auction.count() == 101)
            #expect(try await auction.pending() == [])
        }
        #expect(try await keys("alarms") == [])
        #expect(journal.entries.count == 1)
        #expect(log.entries.isEmpty, "\(log.entries)")
    }

    @Test(
        "a change of a state, its alarm and the row are in one write, and so are the changes of the method and the removal"
    )
    func oneWrite() async throws {
        try await withServer { client, _ in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            store.close()
            let call = Task { try await auction.open("close", inSeconds: 1_000) }
            await store.journal.wait(for: "write 1")
            #expect(try await keys("alarms") == [])
            #expect(try await store.text("auctions/1.bids") == nil)
            store.letOneThrough()
            try await call.value
            #expect(try await keys("alarms") == ["auctions/1"])
            #expect(try await store.text("auctions/1.bids") == "1")
            await clock.advance(by: .seconds(1_001))
            await store.journal.wait(for: "write 2")
            // The method has run, and its write has not.
            #expect(journal.entries.count == 1)
            #expect(try await keys("alarms") == ["auctions/1"])
            #expect(try await store.text("auctions/1.bids") == "1")
            store.letOneThrough()
            try await expectRows(0)
            #expect(try await store.text("auctions/1.bids") == "101")
            #expect(store.journal.entries.count == 2)
            store.open()
        }
    }

    @Test("after a crash between the method and its write the alarm is delivered again, and its changes are kept once")
    func crash() async throws {
        try await withServer { client, _ in
            try await client.resolve(Auction.self, id: "auctions/1").open("close", inSeconds: 1_000)
            store.close()
            await clock.advance(by: .seconds(1_001))
            await store.journal.wait(for: "write 2")
            store.failWrites(StateStoreError(.unavailable, "power is off"))
        }
        #expect(journal.entries.count == 1)
        store.open()
        await store.failures.wait(for: "write 2")
        store.failWrites(nil)
        try await withServer { client, _ in
            await journal.wait { $0.count == 2 }
            try await expectRows(0)
            #expect(try await client.resolve(Auction.self, id: "auctions/1").count() == 101)
        }
    }

    @Test("late alarms are delivered after a restart in the order of their times, and a recurring one once")
    func late() async throws {
        var limits = ServerLimits()
        limits.alarms.concurrent = 1
        try await withServer { client, _ in
            for (number, seconds) in [(1, 300), (2, 100), (3, 200)] {
                let auction = try client.resolve(Auction.self, id: "auctions/\(number)")
                try await auction.open("close", inSeconds: Double(seconds))
            }
            try await client.resolve(Auction.self, id: "auctions/2").open("second", inSeconds: 90)
            try await client.resolve(Auction.self, id: "auctions/4").repeatAlarm("tick", everySeconds: 250)
        }
        try await withServer(limits: limits, shift: .seconds(7_000)) { client, _ in
            await journal.wait { $0.filter { $0.contains(": ") }.count == 5 }
            try await expectRows(1)
            let names = journal.entries.filter { $0.contains(": ") }.map {
                $0.prefix { $0 != " " } + $0.drop { $0 != " " }.prefix(7)
            }
            #expect(
                names == [
                    "auctions/2: second", "auctions/2: close ", "auctions/3: close ", "auctions/4: tick 1",
                    "auctions/1: close ",
                ])
            #expect(try await client.resolve(Auction.self, id: "auctions/4").pending() == ["tick 1"])
        }
    }

    @Test("a recurring alarm is delivered in each period until it is cancelled")
    func recurring() async throws {
        try await withServer { client, _ in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            try await auction.repeatAlarm("tick", everySeconds: 1_000)
            for round in 1...3 {
                await clock.advance(by: .seconds(1_000))
                await journal.wait { $0.count { $0.contains("tick 1") } == round }
                let next = try await auction.pending()
                #expect(next == ["tick 1"])
            }
            #expect(try await auction.cancel("tick"))
            #expect(try await !auction.cancel("tick"))
            #expect(try await keys("alarms") == [])
            #expect(try await keys("alarmTimes") == [])
            await clock.advance(by: .seconds(5_000))
            #expect(journal.entries.count { $0.contains("tick 1") } == 3)
        }
    }

    @Test(
        "an alarm whose method throws is tried again with a delay, and dropped after the last attempt with an error in the log"
    )
    func throwing() async throws {
        var limits = ServerLimits()
        limits.alarms.attempts = 3
        limits.calls.timeout = .seconds(1_000_000)
        try await withServer(limits: limits, failures: 5) { client, _ in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            try await auction.open("close", inSeconds: 1_000)
            try await auction.open("later", inSeconds: 100_000)
            await clock.advance(by: .seconds(1_001))
            // The delays are a few seconds, which may also pass by themselves on a slow machine.
            while journal.entries.count < 3 { await clock.advance(by: .seconds(1)) }
            #expect(try await eventually { try await auction.pending() == ["later 1"] })
            await clock.advance(by: .seconds(1_000))
        }
        #expect(journal.entries == (1...3).map { "auctions/1: close \($0) ada true" })
        #expect(log.entries.count { $0.contains("failed at all 3 attempts; it is removed") } == 1, "\(log.entries)")
    }

    @Test("a method that takes too long delays no others, does not run twice at once, and may succeed late")
    func slow() async throws {
        try await withServer { client, _ in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            try await auction.open("endless", inSeconds: 1_000)
            try await client.resolve(Auction.self, id: "auctions/2").open("close", inSeconds: 1_001)
            await clock.advance(by: .seconds(1_002))
            await journal.wait { $0.count == 2 }
            await clock.advance(by: .seconds(70))
            #expect(try await eventually { try await auction.pending().first != "endless 1" })
            #expect(journal.entries.count == 2)
            journal.record("never")
            try await expectRows(0)
            #expect(journal.entries.count == 3)
        }
    }

    @Test("the method may set its alarm again")
    func again() async throws {
        try await withServer { client, _ in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            try await auction.open("again", inSeconds: 10)
            let row = try await keys("alarmTimes")
            await clock.advance(by: .seconds(20))
            await journal.wait { $0.count == 1 }
            // Not the row of the delivered alarm.
            #expect(
                try await eventually {
                    let rows = try await keys("alarmTimes")
                    return rows.count == 1 && rows != row
                })
            #expect(try await auction.pending() == ["again 1"])
        }
    }

    @Test("a clock that jumps back delays alarms, and one that jumps forward delivers them")
    func clockJumps() async throws {
        try await withServer { client, server in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            try await auction.open("close", inSeconds: 1_000)
            await server.shiftAlarmClock(by: .seconds(-500))
            await clock.advance(by: .seconds(1_400))
            #expect(journal.entries.isEmpty)
            await clock.advance(by: .seconds(101))
            await journal.wait { $0.count == 1 }
            try await auction.open("soon", inSeconds: 100_000)
            await server.shiftAlarmClock(by: .seconds(100_000))
            await journal.wait { $0.count == 2 }
            // One that is set for a time before that of the last delivery.
            await server.shiftAlarmClock(by: .seconds(-100_000))
            try await auction.open("now", inSeconds: -5)
            await journal.wait { $0.count == 3 }
            try await expectRows(0)
        }
    }

    @Test("invalid alarms are refused, and so are alarms where they cannot be delivered")
    func refusals() async throws {
        var limits = ServerLimits()
        limits.alarms.perActor = 2
        try await withServer(limits: limits) { client, _ in
            let auction = try client.resolve(Auction.self, id: "auctions/1")
            for name in ["", String(repeating: "x", count: 129)] {
                let error = await #expect(throws: TrebuchetError.self) { try await auction.open(name, inSeconds: 10) }
                #expect(error?.code == .invalidArguments)
            }
            let error = await #expect(throws: TrebuchetError.self) {
                try await auction.repeatAlarm("a", everySeconds: 0)
            }
            #expect(error?.code == .invalidArguments)
            for name in ["a", "b", "a"] { try await auction.open(name, inSeconds: 1_000) }
            let third = await #expect(throws: TrebuchetError.self) { try await auction.open("c", inSeconds: 10) }
            #expect(third?.code == .rateLimited)
            let silent = await #expect(throws: TrebuchetError.self) {
                try await client.resolve(Silent.self, id: "silent/1").set()
            }
            #expect(silent?.message.contains("func alarm(_ alarm: Alarm)") == true)
        }
        let server = server(store: nil)
        try await server.start()
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        let homeless = await #expect(throws: TrebuchetError.self) {
            try await client.resolve(Auction.self, id: "auctions/1").open("a", inSeconds: 10)
        }
        #expect(homeless?.code == .internal && homeless?.message.contains("a server with a store") == true)
        await client.close()
        await server.cut()
    }

    @Test("the alarms of an actor that is not exposed wait until it is")
    func unexposed() async throws {
        try await withServer { client, _ in
            try await client.resolve(Auction.self, id: "auctions/1").open("close", inSeconds: 10)
        }
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), clock: clock, store: store, log: ConsoleLog { [log] in log.record($0) })
        await server.shiftAlarmClock(by: .seconds(100))
        try await server.start()
        #expect(await eventually { log.entries.contains { $0.contains("'auctions/1' cannot be delivered") } })
        #expect(journal.entries.isEmpty)
        let auction = Auction(name: "auctions/1", journal: journal, actorSystem: server.actorSystem)
        #expect(await server.expose(auction, as: "auctions/1") == nil)
        await journal.wait { $0.count == 1 }
        try await expectRows(0)
        await server.shutdown(drain: .zero)
    }

    @Test("an actor whose activation does not end delays no others")
    func endlessActivation() async throws {
        try await withServer { client, _ in
            for number in 1...2 {
                try await client.resolve(Auction.self, id: "auctions/\(number)").open(
                    "close", inSeconds: Double(number))
            }
        }
        var limits = ServerLimits()
        limits.alarms.concurrent = 1
        limits.calls.timeout = .milliseconds(20)
        let server = TrebuchetServer(
            transport: .webSocket(port: 0), clock: clock, limits: limits, store: store,
            log: ConsoleLog { [log] in log.record($0) })
        let (system, journal) = (server.actorSystem, journal)
        server.expose(Auction.self, as: "auctions/*") { name in
            if name == "auctions/1" { await journal.wait(for: "end") }
            return Auction(name: name, journal: journal, actorSystem: system)
        }
        await server.shiftAlarmClock(by: .seconds(100))
        try await server.start()
        await journal.wait { $0.contains { $0.hasPrefix("auctions/2: close") } }
        #expect(log.entries.contains { $0.contains("'auctions/1' cannot be delivered") }, "\(log.entries)")
        journal.record("end")
        while !journal.entries.contains(where: { $0.hasPrefix("auctions/1: close") }) {
            await clock.advance(by: .seconds(1))
        }
        await server.shutdown(drain: .zero)
    }
}
