import Networking
import Platform
import Synchronization
import Testing

import Transports
@testable import WebSockets

@Suite("Fairness between connections", .dedicatedThreads, .timeLimit(.minutes(5)))
struct FairnessTests {
    /// The handled messages in order: numbers of the flood, and -1 for the other connection's message.
    private final class Log: Sendable {
        let entries = Mutex<[Int]>([])
        /// Opened when the other connection's message is sent.
        let gate = Gate()
    }

    /// Blocks a thread until it is opened.
    private final class Gate: Sendable {
        private let isOpen = Atomic<Bool>(false)
        func open() { isOpen.store(true, ordering: .releasing) }
        func wait() { while !isOpen.load(ordering: .acquiring) {} }
    }

    /// Spends 20 µs on each message, and answers the other connection's.
    private final class SlowHandler: WebSocketHandler, Sendable {
        let log: Log
        init(_ log: Log) { self.log = log }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            guard opcode == .binary else {
                log.entries.withLock { $0.append(-1) }
                return socket.send(text: "answer")
            }
            let number = Int(message.loadUnaligned(as: UInt32.self))
            if number == 0 { log.gate.wait() }
            let end = MonotonicClock.now + 20_000
            while MonotonicClock.now < end {}
            log.entries.withLock { $0.append(number) }
            if number == 1999 { socket.send(text: "all") }
        }
    }

    /// Sends 2,000 messages over one connection and one over another, and returns how many of the flood came before that one.
    private func flood(_ log: Log, _ handler: any WebSocketHandler & Sendable) throws -> Int {
        let server = try WebSocketServer(port: 0, reactors: .servers(count: 1)) { _ in .accept(handler) }
        let flooder = try RawPeer.upgraded(port: server.address.port)
        let other = try RawPeer.upgraded(port: server.address.port)
        try flooder.send((0..<2000).flatMap { frame(2, withUnsafeBytes(of: UInt32($0)) { Array($0) }) })
        try other.send(text("one call"))
        log.gate.open()
        #expect(try other.receiveFrame().payload == Array("answer".utf8))
        #expect(try flooder.receiveFrame().payload == Array("all".utf8))
        let entries = log.entries.withLock { $0 }
        #expect(entries.filter { $0 >= 0 } == Array(0..<2000))
        return try #require(entries.firstIndex(of: -1))
    }

    @Test("a flood gets its share of a turn, then other connections run; all of it is handled, in order")
    func share() throws {
        let log = Log()
        let before = try flood(log, SlowHandler(log))
        #expect(before < 300, "\(before) messages of the flood were handled first")
    }

    /// Starts a job of 50 µs for each message of the flood. The other connection's message needs six jobs in sequence.
    private final class JobHandler: WebSocketHandler, Sendable {
        let log: Log
        init(_ log: Log) { self.log = log }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            guard opcode == .binary else { return startJobs(6, socket) }
            let (number, log) = (Int(message.loadUnaligned(as: UInt32.self)), log)
            if number == 0 { log.gate.wait() }
            Task(executorPreference: socket.reactor.tasks) {
                let end = MonotonicClock.now + 50_000
                while MonotonicClock.now < end {}
                log.entries.withLock { $0.append(number) }
                if number == 1999 { socket.reactor.execute { socket.send(text: "all") } }
            }
        }

        private func startJobs(_ count: Int, _ socket: WebSocket) {
            guard count > 0 else {
                log.entries.withLock { $0.append(-1) }
                return socket.send(text: "answer")
            }
            Task(executorPreference: socket.reactor.tasks) {
                socket.reactor.run { self.startJobs(count - 1, socket) }
            }
        }
    }

    @Test("a flood of calls that are jobs leaves the jobs of other connections a short queue")
    func jobs() throws {
        let log = Log()
        let before = try flood(log, JobHandler(log))
        #expect(before < 900, "\(before) jobs of the flood ran first")
    }

    /// Starts a job of 100 µs, and another one behind it, for each message of 24 floods.
    private final class TwoJobsHandler: WebSocketHandler, Sendable {
        private let jobs: JobHandler
        private let log: Log

        init(_ log: Log) { (self.log, jobs) = (log, JobHandler(log)) }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            guard opcode == .binary else { return jobs.webSocket(socket, didReceive: message, opcode: opcode) }
            log.gate.wait()
            let (number, log) = (Int(message.loadUnaligned(as: UInt32.self)), log)
            Task(executorPreference: socket.reactor.tasks) {
                let end = MonotonicClock.now + 100_000
                while MonotonicClock.now < end {}
                Task(executorPreference: socket.reactor.tasks) {
                    log.entries.withLock { $0.append(number) }
                    if number == 199 { socket.reactor.execute { socket.send(text: "all") } }
                }
            }
        }
    }

    @Test("many floods of calls that are several jobs each do not make the queue of jobs longer in each turn")
    func jobsOfMany() throws {
        let log = Log()
        let server = try WebSocketServer(port: 0, reactors: .servers(count: 1)) { _ in .accept(TwoJobsHandler(log)) }
        let flooders = try (0..<24).map { _ in try RawPeer.upgraded(port: server.address.port) }
        let other = try RawPeer.upgraded(port: server.address.port)
        for flooder in flooders {
            try flooder.send((0..<200).flatMap { frame(2, withUnsafeBytes(of: UInt32($0)) { Array($0) }) })
        }
        try other.send(text("one call"))
        log.gate.open()
        #expect(try other.receiveFrame().payload == Array("answer".utf8))
        for flooder in flooders { #expect(try flooder.receiveFrame().payload == Array("all".utf8)) }
        let entries = log.entries.withLock { $0 }
        #expect(entries.count == 24 * 200 + 1)
        let before = try #require(entries.firstIndex(of: -1))
        #expect(before < 1_000, "\(before) calls of the floods ran first")
    }
}
