import Bytes
import Commands
import Networking
import Platform
import Synchronization
import Transports
import WebSockets

/// Measures one state with many subscribers at one rate, with a bare fan-out of equal size to as many sockets in the same run
/// as the baseline. Server and load have separate cores if there are two. Subscribers count messages without parsing them.
struct FanoutRounds {
    let subscribers: Int
    let size: Int
    let rate: Double
    let rounds: Int
    let seconds: Double

    /// The deliveries and costs of the rounds.
    private struct Measurements {
        var deliveries: [Double] = []
        var costs: [Double] = []

        mutating func add(_ outcome: FanoutCount.Outcome, _ time: Int) {
            deliveries.append(outcome.perSecond)
            costs.append(Double(time) / Double(max(1, outcome.count)))
        }
    }

    func run() async throws -> BenchReport {
        let cores = Cores.ofProcess
        let usesSeparateCores = cores.count > 1
        if usesSeparateCores { Cores.keepThisProcess(on: Array(cores.dropFirst())) }
        defer { if usesSeparateCores { Cores.keepThisProcess(on: cores) } }
        let core = usesSeparateCores ? [cores[0]] : nil
        var (ours, bare) = (Measurements(), Measurements())
        var bytes = 0
        for _ in 0..<rounds {
            let count = FanoutCount(subscribers: subscribers, rate: rate, seconds: seconds)
            let server = try MeasuredServer(
                command: ["serve", "--port", "0", "--reactors", "1", "--bench"], cores: core)
            defer { server.stop() }
            let (outcome, time) = try await count.run(at: server, .board(size: size))
            ours.add(outcome, time)
            server.stop()
            guard outcome.count > 0 else { throw UsageError("no change received from the server; increase --seconds") }
            bytes = outcome.bytes / outcome.count
            let other = try MeasuredServer(
                command: [
                    "bench", "bare-fanout", "--port", "0", "--tick", "\(FanoutCount.tick)", "--size", "\(bytes)",
                ],
                cores: core)
            defer { other.stop() }
            let (least, leastTime) = try await count.run(atBare: other, size: bytes)
            bare.add(least, leastTime)
        }
        var report = BenchReport()
        report.add("subscribers", subscribers)
        report.add("state_bytes", size)
        report.add("updates_per_second", rate)
        report.add("rounds", rounds)
        report.add("delivery_bytes", bytes)
        report.add("deliveries_per_second", ours.deliveries.max()!)
        report.add(FanoutLoad.cost, ours.costs.min()!)
        report.add("bare_deliveries_per_second", bare.deliveries.max()!)
        report.add("bare_cpu_ns_per_delivery", bare.costs.min()!)
        report.add("percent_of_bare", 100 * ours.deliveries.max()! / bare.deliveries.max()!)
        report.add("percent_of_bare_by_cpu", 100 * bare.costs.min()! / ours.costs.min()!)
        return report
    }
}

/// Subscribers that count received messages, and one publisher.
///
/// `@unchecked Sendable`: its state is used on the client's reactor only.
final class FanoutCount: @unchecked Sendable {
    /// The size in bytes of a message to the bare fan-out: equal to that of a call that publishes.
    static let tick = 128

    /// The result of a run.
    struct Outcome {
        let count: Int
        let bytes: Int
        let perSecond: Double
    }

    private let subscribers: Int
    private let rate: Double
    private let seconds: Double
    fileprivate var count = 0
    fileprivate var bytes = 0
    private var isPublishing = false
    private var sockets: [WebSocket] = []
    private var channels: [ByteChannel] = []

    init(subscribers: Int, rate: Double, seconds: Double) {
        self.subscribers = subscribers
        self.rate = rate
        self.seconds = seconds
    }

    /// What the publisher and the subscribers send to a server.
    struct Messages: Sendable {
        /// The first messages of the publisher.
        let publisher: [String]
        /// The first messages of each subscriber.
        let subscriber: [String]
        /// Returns the message of an update, by the number of the update.
        let update: @Sendable (Int) -> String

        /// Changes the state of a `Board`.
        ///
        /// - Parameter size: the size of the state in bytes.
        static func board(size: Int) -> Messages {
            Messages(
                publisher: [Invocation.text("board", "resize(_:)", ["\(size)"])],
                subscriber: [Invocation.text("board", "observeState")]
            ) { Invocation.text("board", "publish(stamp:)", ["\(MonotonicClock.now)"], id: "p\($0)") }
        }
    }

    /// - Returns: the result, and the server's processor time in nanoseconds.
    func run(at server: MeasuredServer, _ messages: Messages) async throws -> (Outcome, Int) {
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        for number in 0...subscribers {
            let socket = try await WebSocketClient.connect(
                to: server.url, subprotocols: [Invocation.subprotocol], reactors: group
            ) { _ in Subscriber(number == 0 ? nil : self) }
            await reactor.perform {
                self.sockets.append(socket)
                for text in number == 0 ? messages.publisher : messages.subscriber { socket.send(text: text) }
            }
        }
        defer { reactor.run { for socket in self.sockets { socket.abort() } } }
        return try await measure(server, on: reactor) { self.sockets[0].send(text: messages.update($0)) }
    }

    func run(atBare server: MeasuredServer, size: Int) async throws -> (Outcome, Int) {
        guard let port = server.url.split(separator: ":").last.flatMap({ Int($0) }) else {
            throw UsageError("the bare fan-out listens at \(server.url)")
        }
        let reactor = try ReactorGroup.clients().reactors[0]
        for number in 0...subscribers {
            let channel = try await Connector.connect(host: "127.0.0.1", port: port, on: reactor)
            await reactor.perform {
                // A connection that fails to start is missing in the count.
                guard (try? channel.start(BareSubscriber(number == 0 ? nil : self, size: size))) != nil else { return }
                self.channels.append(channel)
                if number > 0 { channel.write { $0.append(count: 1) { $0[0] = UInt8(ascii: "s") } } }
            }
        }
        defer { reactor.run { for channel in self.channels { channel.reset() } } }
        return try await measure(server, on: reactor) { _ in
            self.channels[0].write {
                $0.append(count: Self.tick) { $0.update(repeating: UInt8(ascii: "p"), count: Self.tick) }
            }
        }
    }

    private func measure(
        _ server: MeasuredServer, on reactor: Reactor, _ publish: @escaping @Sendable (Int) -> Void
    ) async throws -> (Outcome, Int) {
        let process = try server.knownProcess()
        await reactor.perform {
            self.isPublishing = true
            self.publish(on: reactor, since: MonotonicClock.now, sent: 0, publish)
        }
        try await Task.sleep(for: .seconds(0.5))
        let time = try process.processorTime()
        let (start, before) = (MonotonicClock.now, await reactor.perform { (self.count, self.bytes) })
        try await Task.sleep(for: .seconds(seconds))
        let after = await reactor.perform { (self.count, self.bytes) }
        let duration = MonotonicClock.seconds(since: start)
        let spent = try process.processorTime() - time
        await reactor.perform { self.isPublishing = false }
        let count = after.0 - before.0
        return (Outcome(count: count, bytes: after.1 - before.1, perSecond: Double(count) / duration), spent)
    }

    /// Sends the updates that are due, and repeats after a millisecond.
    private func publish(
        on reactor: Reactor, since start: UInt64, sent: Int, _ body: @escaping @Sendable (Int) -> Void
    ) {
        guard isPublishing else { return }
        let due = Int(MonotonicClock.seconds(since: start) * rate)
        for number in sent..<max(sent, due) { body(number) }
        reactor.schedule(after: .milliseconds(1)) {
            self.publish(on: reactor, since: start, sent: max(sent, due), body)
        }
    }

    /// A WebSocket subscriber or the publisher.
    private final class Subscriber: WebSocketHandler {
        /// Nil for the publisher's connection.
        private let load: FanoutCount?

        init(_ load: FanoutCount?) { self.load = load }

        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {
            guard let load else { return }
            load.count += 1
            // Includes the frame header.
            load.bytes += message.count + (message.count < 126 ? 2 : 4)
        }
    }

    /// A subscriber of the bare fan-out.
    private final class BareSubscriber: ByteChannelDelegate {
        private let load: FanoutCount?
        private let size: Int
        private var rest = 0

        init(_ load: FanoutCount?, size: Int) {
            self.load = load
            self.size = size
        }

        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            guard let load else { return }
            let (messages, left) = (rest + bytes.count).quotientAndRemainder(dividingBy: size)
            rest = left
            load.count += messages
            load.bytes += bytes.count
        }

        func channelDidBecomeWritable(_ channel: ByteChannel) {}

        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }
}
