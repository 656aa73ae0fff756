import Commands
import Networking
import Platform
import Synchronization
import WebSockets

/// Produces the messages of a load that vary; used on the load's reactor only.
protocol RequestScript: AnyObject, Sendable {
    /// Writes the next message of an in-flight slot of a connection before it is sent; `message` has the previous one of the
    /// slot, of any connection.
    func write(_ message: inout [UInt8], connection: Int, slot: Int)

    /// Processes a response.
    func read(_ answer: UnsafeRawBufferPointer)
}

/// Sends messages repeatedly on many connections, each again when it is answered, and measures the response times.
///
/// `@unchecked Sendable`: its state is used on the client's reactor only; `answers` is atomic.
final class RequestLoad: @unchecked Sendable {
    let answers = Atomic<Int>(0)
    /// The number of closed connections, and of first responses that were errors.
    private let errors = Atomic<Int>(0)
    /// The in-flight messages of each connection.
    private var messages: [[UInt8]]
    private let script: (any RequestScript)?
    /// Text in every response that is no error.
    fileprivate let expected: String?
    private let isAwake: Bool
    /// The response of the first failed request.
    private var refusal: String?
    /// The close reason of the first closed connection.
    private var closing: String?
    private var latency = Histogram()
    private var isCounting = false
    private var sockets: [WebSocket] = []

    /// - Parameters:
    ///   - script: writes each message and processes the responses; nil sends the messages unchanged.
    ///   - expected: text that the first response on each connection must contain; nil accepts any.
    ///   - isAwake: whether the load never sleeps, see `Reactor.keepAwake`.
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

    /// Runs for `seconds` after a warm-up of half a second.
    func run(url: String, subprotocols: [String], connections: Int, seconds: Double) async throws -> BenchReport {
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        for number in 0..<connections {
            let socket = try await WebSocketClient.connect(
                to: url, subprotocols: subprotocols, limits: .wide, reactors: group
            ) { _ in Connection(self, number) }
            await reactor.perform { self.sockets.append(socket) }
        }
        await reactor.perform {
            for (number, socket) in self.sockets.enumerated() {
                for slot in 0..<self.inFlight { self.send(slot, on: socket, number) }
            }
        }
        let awake = isAwake ? reactor.keepAwake() : nil
        defer { awake?.cancel() }
        try await Task.sleep(for: .seconds(0.5))
        await reactor.perform { self.isCounting = true }
        let start = MonotonicClock.now
        let before = answers.load(ordering: .relaxed)
        try await Progress.run(seconds: seconds) { self.answers.load(ordering: .relaxed) }
        let duration = MonotonicClock.seconds(since: start)
        let count = answers.load(ordering: .relaxed) - before
        let (latency, refusal, closing) = await reactor.perform { (self.finish(), self.refusal, self.closing) }
        if let refusal { throw UsageError("\(url) rejected the measured operation: \(refusal)") }
        guard count > 0 else {
            let reason =
                closing.map { "it closed the connection: \($0)" }
                ?? "no response to \(connections * inFlight) messages"
            throw UsageError("\(url) failed the measured operation: \(reason)")
        }
        var report = BenchReport()
        report.add("connections", connections)
        report.add("in_flight", inFlight)
        report.add("message_bytes", messages.first?.count ?? 0)
        report.add("seconds", duration)
        report.add("messages", count)
        report.add("errors", errors.load(ordering: .relaxed))
        report.add("messages_per_second", Double(count) / duration)
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

    fileprivate func send(_ slot: Int, on socket: WebSocket, _ connection: Int) {
        script?.write(&messages[slot], connection: connection, slot: slot)
        messages[slot].withUnsafeBytes { socket.send(.text, $0) }
    }

    fileprivate func answered(_ answer: UnsafeMutableRawBufferPointer, after nanoseconds: UInt64) {
        script?.read(UnsafeRawBufferPointer(answer))
        answers.add(1, ordering: .relaxed)
        if isCounting { latency.add(nanoseconds) }
    }

    /// One connection of the load.
    private final class Connection: WebSocketHandler {
        private let load: RequestLoad
        private let number: Int
        /// The times when the in-flight messages were sent; responses arrive in their order.
        private var sent: [UInt64]
        private var next = 0
        private var isFirst = true

        init(_ load: RequestLoad, _ number: Int) {
            self.load = load
            self.number = number
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
            load.send(next, on: socket, number)
            next = next + 1 == sent.count ? 0 : next + 1
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            load.didClose(code, reason)
        }
    }
}

extension Reactor {
    /// Polls the sockets of the reactor instead of sleeping, until the task is cancelled.
    ///
    /// On one machine a server pays for each client that it wakes: several microseconds of its core per message to a sleeping
    /// client. A remote client is woken by its machine.
    func keepAwake() -> Task<Void, Never> {
        Task(executorPreference: taskExecutor) { while !Task.isCancelled { await Task.yield() } }
    }
}
