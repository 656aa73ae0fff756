import Bytes
import Testing

@testable import Networking
import Transports

/// Echoes its input.
private final class Echo: ByteChannelDelegate {
    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        channel.write { $0.append(UnsafeRawBufferPointer(bytes)) }
    }
    func channelDidBecomeWritable(_ channel: ByteChannel) {}
    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
}

/// Ends the connection at the first byte.
private final class ClosingDelegate: ByteChannelDelegate {
    let isReset: Bool

    init(isReset: Bool) { self.isReset = isReset }
    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        isReset ? channel.reset() : channel.close()
    }
    func channelDidBecomeWritable(_ channel: ByteChannel) {}
    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
}

/// Collects its input; used on its reactor alone.
private final class CollectingDelegate: ByteChannelDelegate, @unchecked Sendable {
    var received: [UInt8] = []
    let wanted: Int
    let done: CheckedContinuation<[UInt8], any Error>

    init(wanted: Int, done: CheckedContinuation<[UInt8], any Error>) {
        self.wanted = wanted
        self.done = done
    }
    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        received.append(contentsOf: bytes)
        if received.count >= wanted { channel.close() }
    }
    func channelDidBecomeWritable(_ channel: ByteChannel) {}
    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        if let error { done.resume(throwing: error) } else { done.resume(returning: received) }
    }
}

@Suite struct ByteChannelTests {
    @Test("bytes travel to a server and back, over IPv4 and IPv6", arguments: ["127.0.0.1", "::1", "localhost"])
    func echo(host: String) async throws {
        let reactors = try ReactorGroup.servers(count: 2).reactors
        let listener = try Listener.bind(host: host, port: 0, reactors: reactors) { channel in
            try? channel.start(Echo())
        }
        let reactor = try ReactorGroup.clients().reactors[0]
        let channel = try await Connector.connect(
            host: listener.address.host, port: listener.address.port, on: reactor)
        let sent = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let received = try await withCheckedThrowingContinuation { continuation in
            reactor.execute {
                let gather = CollectingDelegate(wanted: sent.count, done: continuation)
                try! channel.start(gather)
                sent.withUnsafeBytes { channel.write(shared: SharedBytes($0)) }
            }
        }
        #expect(received == sent)
        await listener.close()
    }

    @Test("connecting to an unused port is refused, with a message that names the address")
    func refused() async throws {
        let reactor = try ReactorGroup.clients().reactors[0]
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { _ in }
        let port = listener.address.port
        await listener.close()
        let error = await #expect(throws: TransportError.self) {
            _ = try await Connector.connect(host: "127.0.0.1", port: port, on: reactor)
        }
        #expect(error?.code == .refused)
        #expect(error?.message.contains("127.0.0.1:\(port)") == true)
    }

    @Test("a second server on a used port gets an error that names the port")
    func portTaken() async throws {
        let reactors = try ReactorGroup.servers(count: 2).reactors
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: reactors) { _ in }
        let error = #expect(throws: TransportError.self) {
            _ = try Listener.bind(host: "127.0.0.1", port: listener.address.port, reactors: reactors) { _ in }
        }
        #expect(error?.code == .addressInUse)
        #expect(error?.message.contains("\(listener.address.port)") == true)
        await listener.close()
    }

    @Test("a connection that was never started can be closed or reset", arguments: [false, true])
    func neverStarted(isReset: Bool) async throws {
        let reactor = try ReactorGroup.clients().reactors[0]
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            try? channel.start(Echo())
        }
        weak var ended: ByteChannel?
        do {
            let channel = try await Connector.connect(host: "127.0.0.1", port: listener.address.port, on: reactor)
            ended = channel
            await reactor.perform { isReset ? channel.reset() : channel.close() }
            // After another turn the reactor has released its references.
            await reactor.perform {}
            #expect(ended != nil, "the test still references the channel")
            #expect(!channel.isOpen)
        }
        #expect(ended == nil)
        await listener.close()
    }

    @Test("a reset is an error to the peer, an orderly end is not", arguments: [false, true])
    func reset(isReset: Bool) async throws {
        let reactor = try ReactorGroup.clients().reactors[0]
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            try? channel.start(ClosingDelegate(isReset: isReset))
        }
        let channel = try await Connector.connect(host: "127.0.0.1", port: listener.address.port, on: reactor)
        var error: TransportError?
        do {
            let received = try await withCheckedThrowingContinuation { continuation in
                reactor.execute {
                    try! channel.start(CollectingDelegate(wanted: 1, done: continuation))
                    channel.write { $0.append(1 as UInt8) }
                }
            }
            #expect(received.isEmpty)
        } catch let caught as TransportError {
            error = caught
        }
        #expect(error?.code == (isReset ? .closed : nil))
        await listener.close()
    }
}
