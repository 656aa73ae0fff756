import Bytes
import Glibc
import Platform
import Testing

@testable import Networking
import Transports

/// Reentrant calls of a delegate to its channel.
@Suite(.timeLimit(.minutes(5))) struct ChannelCallsTests {
    /// Two ends of a connection: a channel on a reactor, and a blocking descriptor.
    private func connect(_ reactor: Reactor, _ delegate: @escaping @Sendable () -> any ByteChannelDelegate) async throws
        -> Int32
    {
        let listener = try Listener.bind(host: "127.0.0.1", port: 0, reactors: [reactor]) { channel in
            try? channel.start(delegate())
        }
        let peer = try Socket.open(for: listener.address)
        let flags = fcntl(peer.descriptor, F_GETFL)
        _ = fcntl(peer.descriptor, F_SETFL, flags & ~O_NONBLOCK)
        #expect(peer.connect(to: listener.address) == 0)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(peer.descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return peer.descriptor
    }

    /// Writes until the channel is full, drains the other end, and writes a final word when it becomes writable.
    private final class FillingDelegate: ByteChannelDelegate, @unchecked Sendable {
        /// The other end; set before the first byte arrives, then used on the reactor.
        var peer: Int32 = -1
        let block = [UInt8](repeating: 7, count: 96 << 10)
        var written = 0
        var taken = 0
        var isInside = false
        var calledInside = false

        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            guard written == 0 else { return }
            isInside = true
            while channel.isWritable || channel.pendingBytes < 1 << 20 {
                channel.write { $0.append(block) }
                written += block.count
            }
            // Drains the sockets, so that the send at the end of this call accepts the rest.
            drain()
            isInside = false
        }

        func drain() {
            var buffer = [UInt8](repeating: 0, count: 256 << 10)
            while true {
                let count = recv(peer, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return }
                taken += count
            }
        }

        func channelDidBecomeWritable(_ channel: ByteChannel) {
            if isInside || channel.reactor.corked != nil { calledInside = true }
            channel.write { $0.append(Array("word".utf8)) }
            written += 4
        }
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }

    @Test("bytes that a delegate writes when it becomes writable are sent, from any callback")
    func writable() async throws {
        let reactor = try ReactorGroup.servers().reactors[0]
        let filler = FillingDelegate()
        filler.peer = try await connect(reactor) { filler }
        let peer = filler.peer
        defer { Glibc.close(peer) }
        var byte: UInt8 = 1
        #expect(send(peer, &byte, 1, 0) == 1)
        // All bytes arrive, the final word last; blocking, so on a separate thread.
        let last = await onThread { () -> [UInt8] in
            var last: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 256 << 10)
            while last != Array("word".utf8) {
                let count = recv(peer, &buffer, buffer.count, 0)
                guard count > 0 else { return last }
                last = Array((last + buffer[..<count]).suffix(4))
            }
            return last
        }
        #expect(last == Array("word".utf8))
        #expect(await reactor.perform { filler.calledInside } == false)
    }

    /// Ends the connection in a given way, and detects an end callback within that call.
    private final class ReentrantDelegate: ByteChannelDelegate, @unchecked Sendable {
        let act: (ByteChannel) -> Void
        let done: AsyncStream<Bool>.Continuation
        var isInside = false

        init(_ done: AsyncStream<Bool>.Continuation, _ act: @escaping (ByteChannel) -> Void) {
            self.done = done
            self.act = act
        }
        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            isInside = true
            act(channel)
            isInside = false
        }
        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) { done.yield(isInside) }
    }

    @Test("a delegate is never notified of the end from within its own call", arguments: 0..<4)
    func nested(_ kind: Int) async throws {
        let reactor = try ReactorGroup.servers().reactors[0]
        let (stream, done) = AsyncStream.makeStream(of: Bool.self)
        // Set before the first byte is sent.
        nonisolated(unsafe) var peer: Int32 = -1
        peer = try await connect(reactor) {
            ReentrantDelegate(done) { channel in
                switch kind {
                case 0: channel.close()
                case 1: channel.reset()
                case 2:
                    // The peer is gone, and the write is sent at once.
                    var option = linger(l_onoff: 1, l_linger: 0)
                    setsockopt(peer, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
                    Glibc.close(peer)
                    for _ in 0..<3 {
                        channel.write { $0.append([UInt8](repeating: 0, count: ByteChannel.largestTurn + 1)) }
                    }
                    #expect(!channel.isOpen)
                default: channel.closeAfterFlush()
                }
            }
        }
        let descriptor = peer
        defer { if kind != 2 { Glibc.close(descriptor) } }
        var byte: UInt8 = 1
        #expect(send(descriptor, &byte, 1, 0) == 1)
        if kind == 3 { shutdown(descriptor, Int32(SHUT_WR)) }
        for await wasInside in stream {
            #expect(!wasInside)
            break
        }
    }

    @Test(
        "after the local end closed, a peer that neither reads nor closes is dropped after 5 s", .timeLimit(.minutes(5))
    )
    func callTimeout() async throws {
        let reactor = try ReactorGroup.servers().reactors[0]
        let (stream, done) = AsyncStream.makeStream(of: Bool.self)
        let peer = try await connect(reactor) {
            ReentrantDelegate(done) { channel in
                // More than the sockets hold.
                channel.write { $0.append([UInt8](repeating: 0, count: 64 << 20)) }
                channel.closeAfterFlush()
            }
        }
        defer { Glibc.close(peer) }
        var byte: UInt8 = 1
        #expect(send(peer, &byte, 1, 0) == 1)
        let begin = ContinuousClock.now
        for await _ in stream { break }
        #expect(ContinuousClock.now - begin > .seconds(4))
    }

    @Test("after the local end closed, a limited number of bytes is discarded, then the connection ends")
    func discardedInput() async throws {
        let reactor = try ReactorGroup.servers().reactors[0]
        let (stream, done) = AsyncStream.makeStream(of: Bool.self)
        let peer = try await connect(reactor) {
            ReentrantDelegate(done) { $0.closeAfterFlush(throwingAwayAtMost: 64 << 10) }
        }
        defer { Glibc.close(peer) }
        let sent = await onThread { () -> Int in
            let block = [UInt8](repeating: 1, count: 16 << 10)
            var sent = 0
            // Ends automatically, long before the time limit of 5 s: the sockets hold some MiB at most.
            while sent < 256 << 20 {
                let count = send(peer, block, block.count, Int32(MSG_NOSIGNAL))
                guard count > 0 else { break }
                sent += count
            }
            return sent
        }
        for await _ in stream { break }
        #expect(sent >= 64 << 10)
        #expect(sent < 64 << 20)
    }
}
