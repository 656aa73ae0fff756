import Commands
import Networking
import Platform
import Synchronization
import WebSockets

/// What a load sends that is not the same each time; asked on the load's reactor alone.
protocol RequestScript: AnyObject, Sendable {
    /// Makes the message of one of those in flight, before it is sent, of what was sent in this slot before.
    func write(_ message: inout [UInt8], slot: Int)

    /// Looks at an answer.
    func read(_ answer: UnsafeRawBufferPointer)
}

/// Sends messages over and over on many connections, each again when it is answered, and times the answers.
///
/// `@unchecked Sendable`: its state is touched on the client's reactor alone; `answers` is atomic.
final class RequestLoad: @unchecked Sendable {
    let answers = Atomic<Int>(0)
    /// Connections that were closed, and first answers that were errors.
    private let errors = Atomic<Int>(0)
    /// Those in flight on each connection.
    private var messages: [[UInt8]]
    private let script: (any RequestScript)?
    /// What an answer has that is none of an error.
    fileprivate let expected: String?
    private let isAwake: Bool
    /// What the first that failed was answered.
    private var refusal: String?
    /// Why the first that was closed was.
    private var closing: String?
    private var latency = Histogram()
    private var isCounting = false
    private var sockets: [WebSocket] = []

    /// - Parameters:
    ///   - script: makes each message and looks at the answers; nil sends them as they are.
    ///   - expected: what the first answer on each connection has to have; nil takes any.
    ///   - isAwake: whether the load never sleeps, see `Reactor.keptAwake`.
    init(
        messages: [[UInt8]], script: (any RequestScript)? = nil, expecting expected: String? = nil,
        isAwake: Bool = false
    ) {
        self.messages = messages
        self.script = script
        self.expected = expected
        self.isAwake = isAwake
    }

    fileprivate var inFlight: Int { messages.count }

    /// Runs for `seconds` after half a second of warming up.
    func run(url: String, subprotocols: [String], connections: Int, seconds: Double) async throws -> BenchReport {
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        for _ in 0..<connections {
            let socket = try await WebSocketClient.connect(
                to: url, subprotocols: subprotocols, limits: .wide, reactors: group
            ) { _ in Connection(self) }
            await reactor.perform { self.sockets.append(socket) }
        }
        await reactor.perform {
            for socket in self.sockets { for slot in 0..<self.inFlight { self.send(slot, on: socket) } }
        }
        let awake = isAwake ? reactor.keptAwake() : nil
        defer { awake?.cancel() }
        try await Task.sleep(for: .seconds(0.5))
        await reactor.perform { self.isCounting = true }
        let start = MonotonicClock.now
        let before = answers.load(ordering: .relaxed)
        try await Progress.run(seconds: seconds) { self.answers.load(ordering: .relaxed) }
        let took = MonotonicClock.seconds(since: start)
        let count = answers.load(ordering: .relaxed) - before
        let (latency, refusal, closing) = await reactor.perform { (self.finish(), self.refusal, self.closing) }
        if let refusal { throw UsageError("\(url) does not do what is measured: \(refusal)") }
        guard count > 0 else {
            let reason =
                closing.map { "it closed the connection: \($0)" }
                ?? "it answered none of \(connections * inFlight) messages"
            throw UsageError("\(url) does not do what is measured: \(reason)")
        }
        var report = BenchReport()
        report.add("connections", connections)
        report.add("in_flight", inFlight)
        report.add("message_bytes", messages.first?.count ?? 0)
        report.add("seconds", took)
        report.add("messages", count)
        report.add("errors", errors.load(ordering: .relaxed))
        report.add("messages_per_second", Double(count) / took)
        report.add(latency)
        return report
    }

    fileprivate func failed(_ answer: String? = nil) {
        if let answer, refusal == nil { refusal = String(answer.prefix(500)) }
        if !sockets.isEmpty { errors.add(1, ordering: .relaxed) }
    }

    fileprivate func didClose(_ code: WebSocketCloseCode, _ reason: String) {
        if !sockets.isEmpty, closing == nil { closing = reason.isEmpty ? "\(code)" : "\(code), \(reason)" }
        failed()
    }

    private func finish() -> Histogram {
        isCounting = false
        let opened = sockets
        sockets = []
        for socket in opened { socket.abort() }
        return latency
    }

    fileprivate func send(_ slot: Int, on socket: WebSocket) {
        script?.write(&messages[slot], slot: slot)
        messages[slot].withUnsafeBytes { socket.send(.text, $0) }
    }

    fileprivate func answered(_ answer: UnsafeMutableRawBufferPointer, after nanoseconds: UInt64) {
        script?.read(UnsafeRawBufferPointer(answer))
        answers.add(1, ordering: .relaxed)
        if isCounting { latency.add(nanoseconds) }
    }

    private final class Connection: WebSocketHandler {
        private let load: RequestLoad
        /// When the messages in flight were sent; answers come in their order.
        private var sent: [UInt64]
        private var next = 0
        private var isFirst = true

        init(_ load: RequestLoad) {
            self.load = load
            sent = Array(repeating: MonotonicClock.now, count: load.inFlight)
        }

        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {
            if isFirst {
                isFirst = false
                let text = String(decoding: message, as: UTF8.self)
                if text.contains(#""error""#) || load.expected.map({ !text.contains($0) }) == true { load.failed(text) }
            }
            let now = MonotonicClock.now
            load.answered(message, after: now &- sent[next])
            sent[next] = now
            load.send(next, on: socket)
            next = next + 1 == sent.count ? 0 : next + 1
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            load.didClose(code, reason)
        }
    }
}

extension Reactor {
    /// Looks at its sockets again and again instead of sleeping, until the task is cancelled.
    ///
    /// On one machine a server pays for each client that it wakes, several microseconds of its own core for a message to a
    /// sleeping one. A client elsewhere is woken by another machine.
    func keptAwake() -> Task<Void, Never> {
        Task(executorPreference: taskExecutor) { while !Task.isCancelled { await Task.yield() } }
    }
}
