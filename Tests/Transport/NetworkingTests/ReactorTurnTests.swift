import Bytes
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Networking
import Transports

@Suite(.timeLimit(.minutes(5))) struct ReactorTurnTests {
    /// Records the position of its first byte in a sequence of work.
    private final class PositionRecorder: ByteChannelDelegate, @unchecked Sendable {
        let log: Log
        init(_ log: Log) { self.log = log }
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            log.entries.withLock { $0.append(-1) }
        }
        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }

    private final class Log: Sendable { let entries = Mutex<[Int]>([]) }

    @Test("sockets are polled between slices of a long sequence of work, which keeps its order")
    func jobs() async throws {
        let reactor = try Reactor(name: "test-slices")
        let log = Log()
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            try? channel.start(PositionRecorder(log))
        }
        let client = try await Connector.connect(
            host: "127.0.0.1", port: listener.address.port, on: try ReactorGroup.clients().reactors[0])
        let (begin, begun, sent) = (ThreadSemaphore(), ThreadSemaphore(), ThreadSemaphore())
        await client.reactor.perform { try? client.start(PositionRecorder(Log())) }
        // The sequence is complete before its first item runs, and the byte arrives during that.
        reactor.execute { begin.wait() }
        for number in 0..<1000 {
            reactor.execute {
                if number == 0 {
                    begun.signal()
                    sent.wait()
                }
                let end = MonotonicClock.now + 50_000
                while MonotonicClock.now < end {}
                log.entries.withLock { $0.append(number) }
            }
        }
        begin.signal()
        await onThread { begun.wait() }
        await client.reactor.perform { client.write { $0.append(1 as UInt8) } }
        await client.reactor.perform {}
        sent.signal()
        await reactor.perform {}
        let entries = log.entries.withLock { $0 }
        #expect(entries.filter { $0 >= 0 } == Array(0..<1000))
        #expect(try #require(entries.firstIndex(of: -1)) < 500)
        await listener.close()
    }

    /// Queues itself for some steps, each of which takes longer than the slice of a turn.
    private final class Stepper: Resumable, @unchecked Sendable {
        private let reactor: Reactor
        private let log: Log
        private let number: Int
        private var steps: Int

        init(_ number: Int, steps: Int, _ reactor: Reactor, _ log: Log) {
            (self.number, self.steps, self.reactor, self.log) = (number, steps, reactor, log)
        }

        func resume() {
            let end = MonotonicClock.now + Reactor.partOfTurn
            while MonotonicClock.now < end {}
            log.entries.withLock { $0.append(number) }
            steps -= 1
            if steps > 0 { reactor.scheduleLongStep(self) }
        }
    }

    /// Queues itself in the line until a number of steps is done.
    private final class RequeuingResumable: Resumable, @unchecked Sendable {
        private let reactor: Reactor
        private let log: Log
        private let steps: Int

        init(steps: Int, _ reactor: Reactor, _ log: Log) {
            (self.steps, self.reactor, self.log) = (steps, reactor, log)
        }

        func resume() {
            let isOver = log.entries.withLock { entries in
                if entries.last != -1 { entries.append(-1) }
                return entries.count { $0 > 0 } == steps
            }
            if !isOver { reactor.execute { self.reactor.scheduleResume(self) } }
        }
    }

    @Test("a turn has one long step, however many wait, and each task has its turn")
    func longSteps() async throws {
        let reactor = try Reactor(name: "test-steps")
        let log = Log()
        await reactor.perform {
            for number in 1...3 { reactor.scheduleLongStep(Stepper(number, steps: 2, reactor, log)) }
            reactor.scheduleResume(RequeuingResumable(steps: 6, reactor, log))
        }
        #expect(await eventually { log.entries.withLock { $0.count { $0 > 0 } } == 6 })
        let entries = log.entries.withLock { $0 }
        #expect(entries.filter { $0 > 0 } == [1, 2, 3, 1, 2, 3])
        for (first, second) in zip(entries, entries.dropFirst()) {
            #expect(first < 0 || second < 0, "other work has its turn between two: \(entries)")
        }
    }

    @Test("after a long step other work has the reactor for as long as the step took")
    func restOfLongSteps() async throws {
        let reactor = try Reactor(name: "test-rest")
        let log = Log()
        let times = Mutex<[UInt64]>([])
        /// Takes 5 ms, and notes when it begins.
        final class Step: Resumable, @unchecked Sendable {
            private let body: () -> Void
            init(_ body: @escaping () -> Void) { self.body = body }
            func resume() { body() }
        }
        let steps = (0..<4).map { _ in
            Step {
                let begun = MonotonicClock.now
                while MonotonicClock.now < begun + 5_000_000 {}
                times.withLock { $0.append(begun) }
                log.entries.withLock { $0.append(1) }
            }
        }
        await reactor.perform { for step in steps { reactor.scheduleLongStep(step) } }
        #expect(await eventually { log.entries.withLock { $0.count } == 4 })
        let begun = times.withLock { $0 }
        for (first, second) in zip(begun, begun.dropFirst()) { #expect(second - first >= 10_000_000) }
    }

    /// Uses a whole slice of the reactor when its channel becomes writable.
    private final class SlowWriter: ByteChannelDelegate, @unchecked Sendable {
        private let number: Int
        private let log: Log
        init(_ number: Int, _ log: Log) { (self.number, self.log) = (number, log) }
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {}
        func channelDidBecomeWritable(_ channel: ByteChannel) {
            let end = MonotonicClock.now + 5_000_000
            while MonotonicClock.now < end {}
            log.entries.withLock { $0.append(number) }
        }
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }

    @Test("connections that take long to write more output do so in different turns")
    func slowWriters() async throws {
        let reactor = try Reactor(name: "test-writers")
        let log = Log()
        let accepted = Mutex<[ByteChannel]>([])
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            let number = accepted.withLock { channels in
                channels.append(channel)
                return channels.count
            }
            try? channel.start(SlowWriter(number, log))
        }
        var clients: [ByteChannel] = []
        for _ in 0..<8 {
            let client = try await Connector.connect(
                host: "127.0.0.1", port: listener.address.port, on: try ReactorGroup.clients().reactors[0])
            await client.reactor.perform { try? client.start(SlowWriter(0, log)) }
            clients.append(client)
        }
        #expect(await eventually { accepted.withLock { $0.count } == 8 })
        await reactor.perform {
            for channel in accepted.withLock({ $0 }) {
                channel.write { $0.append([UInt8](repeating: 0, count: channel.limits.high + 1)) }
            }
            // Runs once in each turn.
            @Sendable func mark() {
                let isOver = log.entries.withLock { entries in
                    if entries.last != -1 { entries.append(-1) }
                    return entries.count { $0 > 0 } == 8
                }
                if !isOver { reactor.execute { mark() } }
            }
            mark()
        }
        #expect(await eventually { log.entries.withLock { $0.count { $0 > 0 } } == 8 })
        let entries = log.entries.withLock { $0 }
        for (first, second) in zip(entries, entries.dropFirst()) { #expect(first < 0 || second < 0, "\(entries)") }
        for client in clients { await client.reactor.perform { client.close() } }
        await listener.close()
    }

    /// Spends time on each read, and counts the reads.
    private final class SlowDelegate: ByteChannelDelegate, @unchecked Sendable {
        let reads: Atomic<Int>
        init() { reads = Atomic(0) }
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            reads.add(1, ordering: .relaxed)
            useProcessorTime()
        }
        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }

    private static func useProcessorTime() {
        let end = MonotonicClock.now + 200_000
        while MonotonicClock.now < end {}
    }

    @Test("work from other reactors gets as much time as a hundred busy sockets")
    func share() async throws {
        let reactor = try Reactor(name: "test-share")
        let burner = SlowDelegate()
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            channel.maximumReadBytes = 16
            try? channel.start(burner)
        }
        var clients: [ByteChannel] = []
        for _ in 0..<100 {
            let client = try await Connector.connect(
                host: "127.0.0.1", port: listener.address.port, on: try ReactorGroup.clients().reactors[0])
            await client.reactor.perform {
                try? client.start(PositionRecorder(Log()))
                client.write { $0.append([UInt8](repeating: 0, count: 32 << 10)) }
            }
            clients.append(client)
        }
        var fewest = Int.max
        // A turn is measured with the clock, which also advances while other threads use the processor: then one item may use up a slice,
        // and sockets, which are each read once a turn, get more. Only one undisturbed attempt is needed.
        for _ in 0..<20 where fewest >= 1_500 {
            let before = burner.reads.load(ordering: .relaxed)
            reactor.execute { for _ in 0..<200 { reactor.execute { Self.useProcessorTime() } } }
            await reactor.perform {}
            // This one is queued behind all of them.
            await reactor.perform {}
            fewest = min(fewest, burner.reads.load(ordering: .relaxed) - before)
        }
        // A tenth of the time, as with two milliseconds a turn, would be 2,000 reads.
        #expect(fewest < 1_500)
        for client in clients { await client.reactor.perform { client.close() } }
        await listener.close()
    }

    @Test("the watchdog reports the work that blocks a reactor, and its end")
    func watchdog() async throws {
        let reactor = try Reactor(name: "test-held")
        let gate = ThreadSemaphore()
        let (stream, reports) = AsyncStream.makeStream(of: ReactorStall.self)
        reactor.onStall = { stall in
            reports.yield(stall)
            if !stall.isOver { gate.signal() }
        }
        let label = ActivityLabel.permanent("Board.fill(items:)")
        reactor.execute {
            reactor.recordActivity(label)
            gate.wait()
        }
        var stalls = stream.makeAsyncIterator()
        let first = await stalls.next()
        #expect(first?.activity == "Board.fill(items:)")
        #expect(first?.reactor == "test-held")
        #expect(first?.isOver == false)
        let last = await stalls.next()
        #expect(last?.isOver == true)
        #expect(last?.activity == "Board.fill(items:)")
        #expect((last?.milliseconds ?? 0) >= 100)
        #expect(reactor.stallCount == 1)
    }

    @Test("the watchdog reports unnamed work that other threads sent")
    func watchdogOfUnnamedWork() async throws {
        let reactor = try Reactor(name: "test-held-unnamed")
        let gate = ThreadSemaphore()
        let (stream, reports) = AsyncStream.makeStream(of: ReactorStall.self)
        reactor.onStall = { stall in
            reports.yield(stall)
            if !stall.isOver { gate.signal() }
        }
        reactor.execute { gate.wait() }
        let first = await stream.first { _ in true }
        #expect(first?.activity == "tasks, actors and work sent from other threads")
    }

    @Test("queued work keeps its order, however much runs in between")
    func queue() {
        var queue = WorkQueue<Int>()
        var taken: [Int] = []
        for number in 0..<10_000 {
            queue.append(number)
            if number % 3 == 0 { taken.append(queue.removeFirst()) }
            #expect(queue.count == number + 1 - taken.count)
        }
        while !queue.isEmpty { taken.append(queue.removeFirst()) }
        #expect(taken == Array(0..<10_000))
    }
}
