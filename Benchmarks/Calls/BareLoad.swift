import Bytes
import Commands
import Networking
import Platform
import Synchronization
import Transports

/// Bytes sent over and over to a bare echo, on many connections with many messages in flight on each, as `RequestLoad` sends calls.
///
/// `@unchecked Sendable`: its state is touched on the client's reactor alone; `answers` is atomic.
final class BareLoad: @unchecked Sendable {
    private let answers = Atomic<Int>(0)
    private let size: Int
    private let inFlight: Int
    private var connections: [Connection] = []

    /// Echoes so far.
    var count: Int { answers.load(ordering: .relaxed) }

    /// - Parameter size: bytes of a message.
    init(size: Int, inFlight: Int) {
        self.size = size
        self.inFlight = inFlight
    }

    /// Echoes per second, after half a second of warming up.
    func run(port: Int, connections count: Int, seconds: Double) async throws -> Double {
        let reactor = try ReactorGroup.clients().reactors[0]
        for _ in 0..<count {
            let channel = try await Connector.connect(host: "127.0.0.1", port: port, on: reactor)
            await reactor.perform {
                let connection = Connection(self, channel)
                // One that does not start is missed below.
                if (try? channel.start(connection)) != nil { self.connections.append(connection) }
            }
        }
        await reactor.perform { for connection in self.connections { connection.send(self.inFlight * self.size) } }
        let awake = reactor.keptAwake()
        defer { awake.cancel() }
        try await Task.sleep(for: .seconds(0.5))
        let start = MonotonicClock.now
        let before = answers.load(ordering: .relaxed)
        try await Task.sleep(for: .seconds(seconds))
        let rate =
            Double(answers.load(ordering: .relaxed) - before) / MonotonicClock.seconds(since: start)
        await reactor.perform {
            let ended = self.connections
            self.connections = []
            for connection in ended { connection.channel.reset() }
        }
        guard rate > 0 else { throw UsageError("the bare echo did not answer") }
        return rate
    }

    private final class Connection: ByteChannelDelegate {
        private let load: BareLoad
        let channel: ByteChannel
        /// Bytes that have come of a message that is not all there.
        private var rest = 0

        init(_ load: BareLoad, _ channel: ByteChannel) {
            self.load = load
            self.channel = channel
        }

        func send(_ count: Int) {
            channel.write { $0.append(count: count) { $0.update(repeating: 0x61, count: count) } }
        }

        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            let (messages, left) = (rest + bytes.count).quotientAndRemainder(dividingBy: load.size)
            rest = left
            load.answers.add(messages, ordering: .relaxed)
            if messages > 0 { channel.corked { send(messages * load.size) } }
        }

        func channelDidBecomeWritable(_ channel: ByteChannel) {}

        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }
}
