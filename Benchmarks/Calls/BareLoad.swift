import Bytes
import Commands
import Networking
import Platform
import Synchronization
import Transports

/// Sends the same bytes repeatedly to an echo, with or without a protocol, on many connections with many messages in flight, as
/// `RequestLoad` sends calls. Messages are created once, and only the first response is checked, so the load costs the same
/// with any peer.
///
/// `@unchecked Sendable`: its state is used on the client's reactor only; `answers` is atomic.
final class BareLoad: @unchecked Sendable {
    /// The bytes exchanged on each connection.
    struct Exchange {
        var message: [UInt8]
        var answer: [UInt8]
        /// A request sent first, whose response is a head that ends with an empty line; nil if messages begin at once.
        var opening: String?
        /// Nil for a connection without TLS.
        var tls: TLSContext?

        /// An exchange of equal bytes in both directions.
        init(size: Int) {
            message = Array(repeating: 0x61, count: size)
            answer = message
        }
    }

    /// The result of a run.
    struct Outcome {
        /// The number of echoes per second.
        let rate: Double
        /// The processor time of the server in nanoseconds per echo.
        let cost: Double
    }

    /// The size in bytes from which connections share a message; smaller ones are copied into one write.
    private static let smallestShared = 8 << 10

    private let answers = Atomic<Int>(0)
    private let exchange: Exchange
    private let inFlight: Int
    private let messages: [UInt8]
    private let shared: SharedBytes?
    private var connections: [Connection] = []
    private var failure: String?

    init(_ exchange: Exchange, inFlight: Int) {
        self.exchange = exchange
        self.inFlight = inFlight
        let isShared = exchange.message.count >= Self.smallestShared
        messages = isShared ? [] : Array(repeatElement(exchange.message, count: inFlight).joined())
        shared = isShared ? exchange.message.withUnsafeBytes { SharedBytes($0) } : nil
    }

    /// Runs for `seconds` after a warm-up of half a second.
    func run(at server: MeasuredServer, connections count: Int, seconds: Double) async throws -> Outcome {
        guard let port = server.url.split(separator: ":").last.flatMap({ Int($0) }) else {
            throw UsageError("the echo listens at \(server.url)")
        }
        let process = try server.knownProcess()
        let reactor = try ReactorGroup.clients().reactors[0]
        for _ in 0..<count {
            let channel = try await Connector.connect(host: "127.0.0.1", port: port, on: reactor)
            if let tls = exchange.tls { try channel.secure(with: tls, host: "127.0.0.1") }
            await reactor.perform {
                let connection = Connection(self, channel)
                // A connection that fails to start is detected below.
                if (try? channel.start(connection)) != nil { self.connections.append(connection) }
            }
        }
        await reactor.perform { for connection in self.connections { connection.begin() } }
        let awake = reactor.keepAwake()
        defer { awake.cancel() }
        try await Task.sleep(for: .seconds(0.5))
        let time = try process.processorTime()
        let start = MonotonicClock.now
        let before = answers.load(ordering: .relaxed)
        try await Task.sleep(for: .seconds(seconds))
        let echoes = answers.load(ordering: .relaxed) - before
        let duration = MonotonicClock.seconds(since: start)
        let spent = try process.processorTime() - time
        let failure = await reactor.perform {
            let ended = self.connections
            self.connections = []
            for connection in ended { connection.channel.reset() }
            return self.failure
        }
        if let failure { throw UsageError("the echo at \(server.url): \(failure)") }
        guard echoes > 0 else { throw UsageError("the echo at \(server.url) did not respond") }
        return Outcome(rate: Double(echoes) / duration, cost: Double(spent) / Double(echoes))
    }

    /// One connection of the load.
    private final class Connection: ByteChannelDelegate {
        private let load: BareLoad
        let channel: ByteChannel
        /// The received part of the response to the opening; nil when it is complete.
        private var head: [UInt8]?
        /// The first response until it is complete.
        private var first: [UInt8]? = []
        /// The number of received bytes of an incomplete message.
        private var rest = 0

        init(_ load: BareLoad, _ channel: ByteChannel) {
            self.load = load
            self.channel = channel
        }

        func begin() {
            guard let opening = load.exchange.opening else { return send(load.inFlight) }
            head = []
            channel.write { $0.append(utf8: opening) }
        }

        private func send(_ count: Int) {
            if let shared = load.shared {
                for _ in 0..<count { channel.write(shared: shared) }
            } else {
                load.messages.withUnsafeBytes { messages in
                    let some = UnsafeRawBufferPointer(rebasing: messages[..<(count * load.exchange.message.count)])
                    channel.write { $0.append(some) }
                }
            }
        }

        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            guard head == nil else { return takeHead(bytes) }
            if first != nil { check(bytes) }
            let (messages, left) = (rest + bytes.count).quotientAndRemainder(dividingBy: load.exchange.answer.count)
            rest = left
            load.answers.add(messages, ordering: .relaxed)
            if messages > 0 { channel.corked { send(messages) } }
        }

        /// No bytes follow the head before a message is sent.
        private func takeHead(_ bytes: UnsafeMutableRawBufferPointer) {
            head?.append(contentsOf: bytes)
            guard let text = head.map({ String(decoding: $0, as: UTF8.self) }), text.hasSuffix("\r\n\r\n") else {
                return
            }
            guard text.hasPrefix("HTTP/1.1 101 ") else {
                return fail("unexpected response \(text.prefix { $0 != "\r\n" })")
            }
            head = nil
            send(load.inFlight)
        }

        private func check(_ bytes: UnsafeMutableRawBufferPointer) {
            first?.append(contentsOf: bytes)
            guard let came = first, came.count >= load.exchange.answer.count else { return }
            first = nil
            if !came.starts(with: load.exchange.answer) { fail("its first response is not an echo") }
        }

        private func fail(_ reason: String) {
            load.failure = reason
            channel.close()
        }

        func channelDidBecomeWritable(_ channel: ByteChannel) {}

        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
            if let error, load.failure == nil { load.failure = "\(error)" }
        }
    }
}
