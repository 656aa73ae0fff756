import Bytes
import Networking
import Synchronization
import Transports

/// A port that echoes all bytes.
final class EchoPort: Sendable {
    let listener: Listener

    init() throws {
        listener = try Listener.bind(
            host: "127.0.0.1", port: 0, reactors: ReactorGroup.servers(count: 1).reactors
        ) { channel in try? channel.start(Echo()) }
    }

    private final class Echo: ByteChannelDelegate {
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            channel.write { $0.append(UnsafeRawBufferPointer(bytes)) }
        }
        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }
}

/// A connection that records received bytes and its end.
final class BytePeer: ByteChannelDelegate, Sendable {
    struct Contents {
        var received: [UInt8] = []
        /// The size of each read.
        var reads: [Int] = []
        var isClosed = false
        var error: TransportError?
    }

    private let contents = Mutex(Contents())
    private let channel: ByteChannel

    private init(_ channel: ByteChannel) { self.channel = channel }

    static func connect(_ address: SocketAddress) async throws -> BytePeer {
        let reactor = try ReactorGroup.clients().reactors[0]
        let channel = try await Connector.connect(host: address.host, port: address.port, on: reactor)
        let peer = BytePeer(channel)
        try await reactor.perform { Result { try channel.start(peer) } }.get()
        return peer
    }

    func send(_ bytes: [UInt8]) async {
        let channel = channel
        await channel.reactor.perform { channel.write { $0.append(bytes) } }
    }

    /// Closes the output; later input is discarded.
    func finish() async {
        let channel = channel
        await channel.reactor.perform { channel.closeAfterFlush() }
    }

    var now: Contents { contents.withLock { $0 } }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        contents.withLock { contents in
            contents.received.append(contentsOf: bytes)
            contents.reads.append(bytes.count)
        }
    }
    func channelDidBecomeWritable(_ channel: ByteChannel) {}
    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        contents.withLock { contents in
            contents.isClosed = true
            contents.error = error
        }
    }
}
