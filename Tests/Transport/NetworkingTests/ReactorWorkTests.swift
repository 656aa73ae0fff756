import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Networking
import Transports

@Suite("Turns of a reactor, and its rest", .timeLimit(.minutes(5)), .serialized, .dedicatedReactor)
struct ReactorWorkTests {
    /// Records completed work, in order.
    private final class Log: Sendable {
        private let entries = Mutex<[String]>([])
        func record(_ text: String) { entries.withLock { $0.append(text) } }
        var all: [String] { entries.withLock { $0 } }
    }

    @Test("a clock follows real time until it is advanced, and keeps the added time")
    func clock() async throws {
        let reactor = try Reactor(name: "test-clock")
        #expect(reactor.timeAhead == 0)
        reactor.advance(by: 7_000_000_000)
        reactor.advance(by: 5)
        #expect(reactor.timeAhead == 7_000_000_005)
        let before = MonotonicClock.now
        let now = reactor.now
        #expect(now - before >= 7_000_000_005)
        #expect(now - before < 60_000_000_000)
    }

    @Test("a reactor's thread is named, for process inspection")
    func name() async throws {
        let reactor = try Reactor(name: "test-name")
        #expect(reactor.name == "test-name")
        let name = await reactor.perform { try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8) }
        #expect(name == "test-name\n")
    }

    @Test("run(_:) runs work at once on the reactor, and later from elsewhere")
    func run() async throws {
        let reactor = try Reactor(name: "test-run")
        let log = Log()
        #expect(!reactor.isCurrent)
        #expect(reactor.isIsolatingCurrentContext() == false)
        await reactor.perform {
            reactor.execute { log.record("later") }
            reactor.run { log.record("at once") }
            log.record("\(reactor.isCurrent) \(reactor.isIsolatingCurrentContext() == true)")
        }
        await reactor.perform {}
        reactor.run { log.record("from elsewhere") }
        await reactor.perform {}
        #expect(log.all == ["at once", "true true", "later", "from elsewhere"])
    }

    @Test("timers fire by the clock, in deadline order, unless they are cancelled or their owner is freed")
    func timers() async throws {
        let reactor = try Reactor(name: "test-timers")
        let log = Log()
        final class Owner: Sendable {}
        let owner = Owner()
        await reactor.perform {
            reactor.schedule(after: .seconds(2_000)) { log.record("20") }
            reactor.schedule(after: .seconds(1_000)) { log.record("10") }
            reactor.schedule(after: .seconds(1_500)) { log.record("15") }.cancel()
            reactor.schedule(after: .seconds(1_600), for: owner) { _ in log.record("owner") }
            reactor.schedule(after: .seconds(1_700), for: Owner()) { _ in log.record("nobody") }
        }
        #expect(await reactor.perform { reactor.liveTimerCount } == 4)
        #expect(await reactor.perform { (reactor.nextDeadline ?? 0) > reactor.now })
        reactor.advance(by: 900_000_000_000)
        await reactor.perform {}
        #expect(log.all == [])
        reactor.advance(by: 100_000_000_000)
        await reactor.perform {}
        await reactor.perform {}
        #expect(log.all == ["10"])
        reactor.advance(by: 5_000_000_000_000)
        await reactor.perform {}
        await reactor.perform {}
        #expect(log.all == ["10", "owner", "20"])
        #expect(await reactor.perform { reactor.liveTimerCount } == 0)
        #expect(await reactor.perform { reactor.nextDeadline } == nil)
        withExtendedLifetime(owner) {}
    }

    @Test("a timer wakes an idle reactor, not before its deadline")
    func wakes() async throws {
        let reactor = try Reactor(name: "test-wakes")
        let (stream, fired) = AsyncStream.makeStream(of: UInt64.self)
        let before = MonotonicClock.now
        await reactor.perform { _ = reactor.schedule(after: .milliseconds(20)) { fired.yield(MonotonicClock.now) } }
        let at = try #require(await stream.first { _ in true })
        #expect(at - before >= 20_000_000)
    }

    private final class Chore: EndOfTurnTask, Resumable, Sendable {
        let work: @Sendable () -> Void
        init(_ work: @escaping @Sendable () -> Void) { self.work = work }
        func endOfTurn() { work() }
        func resume() { work() }
    }

    @Test("end-of-turn work runs in its turn, also when added during it")
    func endOfTurn() async throws {
        let reactor = try Reactor(name: "test-end")
        let log = Log()
        await reactor.perform {
            let second = Chore { log.record("second") }
            let first = Chore {
                log.record("first")
                reactor.atEndOfTurn(second)
            }
            reactor.atEndOfTurn(first)
            log.record("work")
            // In the next turn.
            reactor.execute { log.record("next") }
        }
        await reactor.perform {}
        #expect(log.all == ["work", "first", "second", "next"])
    }

    @Test("resumables run in order, each once")
    func queueOrder() async throws {
        let reactor = try Reactor(name: "test-line")
        let log = Log()
        await reactor.perform {
            for number in 0..<5 { reactor.scheduleResume(Chore { log.record("\(number)") }) }
        }
        await reactor.perform {}
        await reactor.perform {}
        #expect(log.all == ["0", "1", "2", "3", "4"])
    }

    private static func useProcessorTime() {
        let end = MonotonicClock.now + 50_000
        while MonotonicClock.now < end {}
    }

    /// Schedules itself again a number of times, and then reports it.
    ///
    /// `@unchecked Sendable`: used on its reactor alone.
    private final class RepeatingResumable: Resumable, @unchecked Sendable {
        let reactor: Reactor
        let done: Journal
        var rounds = 200
        init(_ reactor: Reactor, _ done: Journal) {
            self.reactor = reactor
            self.done = done
        }
        func resume() {
            ReactorWorkTests.useProcessorTime()
            rounds -= 1
            if rounds > 0 { reactor.scheduleResume(self) } else { done.record("done") }
        }
    }

    @Test(
        "work that exceeds a turn continues automatically, without a wakeup",
        arguments: [
            "sent", "jobs", "line", "end",
        ])
    func continuedWork(part: String) async throws {
        let reactor = try Reactor(name: "test-goes-on")
        let done = Journal()
        // All of it is queued before any of it runs.
        reactor.execute {
            for number in 1...200 {
                let isLast = number == 200
                let work: @Sendable () -> Void = {
                    Self.useProcessorTime()
                    if isLast { done.record("done") }
                }
                switch part {
                case "sent": reactor.execute(work)
                case "jobs": Task(executorPreference: reactor.tasks) { work() }
                case "line": if isLast { reactor.scheduleResume(RepeatingResumable(reactor, done)) }
                // Scheduled in a turn that has ended, so for the next one.
                default:
                    if isLast { reactor.atEndOfTurn(Chore { reactor.scheduleResume(Chore { done.record("done") }) }) }
                }
            }
        }
        #expect(await eventually { done.entries == ["done"] })
    }

    @Test("an idle reactor waits, also with a paused connection that has input", arguments: [true, false])
    func rests(isStarted: Bool) async throws {
        let rig = try await ChannelRig(isStarted: isStarted)
        await rig.on {
            rig.channel.pauseReading()
            if !isStarted { try! rig.channel.start(rig.ears) }
        }
        rig.send([1, 2, 3])
        await rig.settle()
        #expect(await rig.isAtRest())
        #expect(await rig.on { rig.ears.received } == [])
    }

    @Test("a reactor's clock is held until all holders have released it")
    func stoppedClock() throws {
        let reactor = try Reactor(name: "test-hold")
        var observed = [reactor.isTimeHeld]
        for isHeld in [true, true, false, false] {
            isHeld ? reactor.holdTime() : reactor.releaseTime()
            observed.append(reactor.isTimeHeld)
        }
        #expect(observed == [false, true, true, true, false])
    }

    @Test("the watchdog rests after a second without activity, and the first turn ends that")
    func watchdogRests() async throws {
        let watchdog = Watchdog()
        watchdog.watch(try Reactor(name: "test-quiet"))
        for _ in 0..<2 {
            #expect(await eventually { watchdog.isSleeping.load(ordering: .sequentiallyConsistent) })
            watchdog.turnDidStart()
            let stillRests = watchdog.isSleeping.load(ordering: .sequentiallyConsistent)
            #expect(!stillRests)
        }
    }

    @Test(
        "the watchdog names the part of a turn that blocks a reactor",
        arguments: [
            ("sockets", "reading from connections"), ("line", "resuming connections with more input"),
            ("work", "tasks, actors and work sent from other threads"), ("timers", "timers"),
            ("jobs", "tasks, actors and work sent from other threads"), ("end", "sending output at the end of a turn"),
        ])
    func blockedPart(part: String, activity: String) async throws {
        let rig = try await ChannelRig()
        let reactor = rig.reactor
        let gate = ThreadSemaphore()
        let (stream, reports) = AsyncStream.makeStream(of: ReactorStall.self)
        reactor.onStall = { stall in
            reports.yield(stall)
            if !stall.isOver { gate.signal() }
        }
        let stallsBefore = reactor.stallCount
        await rig.on {
            switch part {
            case "sockets":
                rig.ears.onRead = { _ in gate.wait() }
                rig.send([1])
            case "line": reactor.scheduleResume(Chore { gate.wait() })
            case "work": reactor.execute { gate.wait() }
            case "jobs": Task(executorPreference: reactor.tasks) { gate.wait() }
            case "timers": reactor.schedule(after: .nanoseconds(1)) { gate.wait() }
            default: reactor.atEndOfTurn(Chore { gate.wait() })
            }
        }
        var stalls = stream.makeAsyncIterator()
        #expect(await stalls.next()?.activity == activity)
        #expect(await stalls.next()?.isOver == true)
        #expect(reactor.stallCount == stallsBefore + 1)
        reactor.onStall = nil
    }

    @Test("the watchdog reports in sentences")
    func sentences() {
        let stall = ReactorStall(reactor: "reactor-1", activity: "timers", milliseconds: 130, isOver: false)
        #expect(stall.description == "reactor-1 is blocked, for 130 ms so far: timers")
        let over = ReactorStall(reactor: "reactor-1", activity: "timers", milliseconds: 240, isOver: true)
        #expect(over.description == "reactor-1 was blocked for 240 ms: timers")
    }

    // MARK: Connecting

    @Test("a connection whose task is cancelled before its start is not made")
    func cancelledBefore() async throws {
        let reactor = try Reactor(name: "test-cancelled")
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { _ in }
        let port = listener.address.port
        let outcome = Journal()
        let attempt = Task {
            // Cancelled before it starts: nothing in between suspends.
            withUnsafeCurrentTask { $0?.cancel() }
            do {
                _ = try await Connector.connect(host: "127.0.0.1", port: port, on: reactor)
                outcome.record("connected")
            } catch {
                outcome.record("\(type(of: error))")
            }
        }
        // A connection that is made never ends: this shows before a time limit.
        #expect(await eventually { !outcome.entries.isEmpty })
        attempt.cancel()
        #expect(outcome.entries == ["CancellationError"])
        await listener.close()
    }

    @Test("a host that does not respond in time is named, and the attempt leaves nothing behind")
    func timedOut() async throws {
        // A dedicated reactor without other timers.
        let reactor = try Reactor(name: "test-timed-out")
        // A listening socket with a full backlog: the kernel drops further attempts.
        let address = SocketAddress(host: "127.0.0.1", port: 0, isIPv6: false)
        let listening = try Socket.open(for: address)
        defer { listening.close() }
        try #require(listening.bind(to: address) == 0 && listening.listen(backlog: 0) == 0)
        let full = try #require(listening.localAddress)
        var sockets: [Socket] = []
        for _ in 0..<4 {
            let socket = try Socket.open(for: full)
            _ = socket.connect(to: full)
            sockets.append(socket)
        }
        defer { for socket in sockets { socket.close() } }
        let attempt = Task {
            try await Connector.connect(host: "127.0.0.1", port: full.port, on: reactor, timeout: .seconds(30))
        }
        #expect(await eventually { await reactor.perform { reactor.liveTimerCount } == 1 })
        reactor.advance(by: 30_000_000_000)
        let error = await #expect(throws: TransportError.self) { _ = try await attempt.value }
        #expect(error?.code == .timedOut)
        #expect(error?.message == "connecting to 127.0.0.1:\(full.port): no response within 30.0 seconds")
        #expect(await reactor.perform { reactor.liveTimerCount } == 0)
    }

    @Test("a host without a local address is rejected by name when listening")
    func listeningElsewhere() throws {
        let reactor = ReactorGroup.client
        let error = #expect(throws: TransportError.self) {
            _ = try Listener.bind(host: "192.0.2.1", port: 0, reactors: [reactor]) { _ in }
        }
        #expect(error?.code == .addressInvalid)
        #expect(error?.message.hasPrefix("listening on 192.0.2.1:0: ") == true)
    }

    @Test("each reactor of a listener accepts connections on the same port")
    func onePort() async throws {
        let reactors = try ReactorGroup.servers(count: 2).reactors
        let seen = Mutex<Set<String>>([])
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: reactors) { channel in
            seen.withLock { _ = $0.insert(channel.reactor.name) }
        }
        #expect(listener.address.port > 0)
        // The kernel distributes connections at random.
        for _ in 0..<200 where seen.withLock({ $0.count }) < 2 {
            let channel = try await Connector.connect(
                host: "127.0.0.1", port: listener.address.port, on: ReactorGroup.client)
            await channel.reactor.perform { channel.close() }
        }
        #expect(await eventually { seen.withLock { $0.count } == 2 })
        await listener.close()
        // Afterwards connections are refused.
        let error = await #expect(throws: TransportError.self) {
            _ = try await Connector.connect(host: "127.0.0.1", port: listener.address.port, on: ReactorGroup.client)
        }
        #expect(error?.code == .refused)
    }
}
