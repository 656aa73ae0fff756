import Bytes
import Glibc
import TestSupport
import Testing

@testable import Networking
import Transports

@Suite("Input of a channel, and its end", .timeLimit(.minutes(5)), .serialized, .dedicatedReactor)
struct ChannelInputTests {
    @Test("one read is limited by the setting and by the reactor's buffer")
    func mostRead() async throws {
        let rig = try await ChannelRig()
        let (channel, ears) = (rig.channel, rig.ears)
        #expect(await rig.on { channel.maximumReadBytes } == 256 << 10)
        await rig.on { channel.maximumReadBytes = (256 << 10) + 1 }
        #expect(await rig.on { channel.maximumReadBytes } == 256 << 10)
        await rig.on { channel.maximumReadBytes = 10 }
        #expect(await rig.on { channel.maximumReadBytes } == 10)
        rig.send([UInt8](repeating: 1, count: 25))
        for _ in 0..<4 { await rig.settle() }
        #expect(await rig.on { ears.reads } == [10, 10, 5])
    }

    @Test("one read of a peer with pending output is limited to 64 KiB", arguments: [true, false])
    func smallRead(isBehind: Bool) async throws {
        let rig = try await ChannelRig()
        let (channel, ears) = (rig.channel, rig.ears)
        rig.peer.set(SO_SNDBUF, to: 1 << 20)
        await rig.on {
            channel.pauseReading()
            if isBehind {
                rig.fill()
                rig.write(1)
            }
        }
        #expect(rig.send([UInt8](repeating: 1, count: 100_000)) == 100_000)
        await rig.on { channel.resumeReading() }
        for _ in 0..<3 { await rig.settle() }
        #expect(await rig.on { ears.reads } == (isBehind ? [65_536, 34_464] : [100_000]))
    }

    @Test("no input is read while reading is paused, however often it was paused")
    func paused() async throws {
        let rig = try await ChannelRig()
        let (channel, ears) = (rig.channel, rig.ears)
        await rig.on {
            channel.pauseReading()
            channel.pauseReading()
        }
        rig.send([1])
        await rig.settle()
        #expect(await rig.on { ears.reads } == [])
        await rig.on {
            channel.resumeReading()
            channel.resumeReading()
        }
        await rig.settle()
        #expect(await rig.on { ears.received } == [1])
    }

    @Test("a channel that was paused before its start does not read")
    func pausedBefore() async throws {
        let rig = try await ChannelRig(isStarted: false)
        let (channel, ears) = (rig.channel, rig.ears)
        rig.send([1])
        await rig.on {
            channel.pauseReading()
            try! channel.start(ears)
        }
        await rig.settle()
        #expect(await rig.on { ears.reads } == [])
        await rig.on { channel.resumeReading() }
        await rig.settle()
        #expect(await rig.on { ears.received } == [1])
    }

    @Test("a paused channel is notified of its end, orderly or not")
    func pausedEnd() async throws {
        let rig = try await ChannelRig()
        await rig.on { rig.channel.pauseReading() }
        // The local end is shut down as well, so that no traffic remains: epoll reports this state regardless of interest.
        shutdown(rig.peer.descriptor, Int32(SHUT_RDWR))
        await rig.settle()
        #expect(await rig.on { rig.ears.ends } == [nil])
    }

    @Test("the end of the peer's side is reported once, and then all references are released")
    func end() async throws {
        weak var channel: ByteChannel?
        weak var ears: RecordingChannelDelegate?
        do {
            let rig = try await ChannelRig()
            channel = rig.channel
            ears = rig.ears
            rig.send([1, 2])
            rig.peer.shutdownWriting()
            await rig.settle()
            await rig.settle()
            #expect(await rig.on { rig.ears.received } == [1, 2])
            #expect(await rig.on { rig.ears.ends } == [nil])
            #expect(await rig.on { !rig.channel.isOpen && rig.channel.delegate == nil })
            await rig.on {
                rig.channel.close()
                rig.channel.reset()
                rig.channel.closeAfterFlush()
            }
            #expect(await rig.on { rig.ears.ends } == [nil])
            #expect(rig.take() == nil)
        }
        let reactor = ReactorGroup.client
        for _ in 0..<100 where channel != nil { await reactor.perform {} }
        #expect(channel == nil)
        #expect(ears == nil)
    }

    @Test("a socket that cannot be watched is an error, and the delegate is released")
    func unwatchable() async throws {
        let group = ReactorGroup.acquireExclusive(1)
        let reactor = group.reactors[0]
        let (message, hasDelegate) = await reactor.perform { () -> (String?, Bool) in
            let channel = ByteChannel(Socket(descriptor: -1), on: reactor)
            do throws(TransportError) {
                try channel.start(RecordingChannelDelegate())
                return (nil, true)
            } catch {
                return (error.message, channel.delegate != nil)
            }
        }
        #expect(message?.contains("epoll_ctl: EBADF") == true)
        #expect(!hasDelegate)
        group.releaseExclusive()
    }

    @Test("an unreferenced channel closes its socket")
    func dropped() async throws {
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        let group = ReactorGroup.acquireExclusive(1)
        do { _ = ByteChannel(Socket(descriptor: ends[0]), on: group.reactors[0]) }
        var byte: UInt8 = 0
        #expect(recv(ends[1], &byte, 1, Int32(MSG_DONTWAIT)) == 0)
        close(ends[1])
        group.releaseExclusive()
    }

    // MARK: After the local end closed

    @Test("bytes written before the end arrive, then the end", arguments: [false, true])
    func closeAfterFlush(isInsideRead: Bool) async throws {
        let rig = try await ChannelRig()
        let (channel, ears) = (rig.channel, rig.ears)
        if isInsideRead {
            await rig.on {
                ears.onRead = { channel in
                    rig.write(3)
                    channel.closeAfterFlush()
                    rig.write(5)
                }
            }
            rig.send([1])
            await rig.settle()
        } else {
            await rig.on {
                rig.write(3)
                channel.closeAfterFlush()
                rig.write(5)
            }
        }
        #expect(await rig.on { !channel.isOpen })
        // Within an event, later output follows in the same buffer.
        #expect(rig.take()?.prefix(3) == [7, 7, 7])
        #expect(rig.take() == nil)
        // The channel waits for the peer's end.
        #expect(await rig.on { ears.ends.isEmpty })
        rig.peer.shutdownWriting()
        await rig.settle()
        #expect(await rig.on { ears.ends } == [nil])
        #expect(await rig.on { channel.reactor.liveTimerCount } == 0)
    }

    @Test("the end waits until the peer has received all output")
    func flushing() async throws {
        let rig = try await ChannelRig()
        let channel = rig.channel
        await rig.on {
            rig.fill()
            rig.write(300_000)
            channel.closeAfterFlush()
        }
        #expect(await rig.on { channel.pendingBytes } > 0)
        var last: [UInt8] = []
        while !Task.isCancelled, let part = rig.take() {
            last = (last + part).suffix(300_000)
            await rig.settle()
        }
        #expect(last == [UInt8](repeating: 7, count: 300_000))
        #expect(await rig.on { rig.ears.ends.isEmpty })
    }

    @Test("later input is discarded, up to the limit", arguments: [(10, true), (11, false)])
    func discardedInput(count: Int, isOpen: Bool) async throws {
        let rig = try await ChannelRig()
        await rig.on {
            // Paused or not, input is read and discarded.
            rig.channel.pauseReading()
            rig.channel.closeAfterFlush(throwingAwayAtMost: 10)
        }
        rig.send([UInt8](repeating: 1, count: count - 4))
        await rig.settle()
        #expect(await rig.on { rig.ears.ends.isEmpty })
        rig.send([1, 2, 3, 4])
        await rig.settle()
        #expect(await rig.on { rig.ears.ends.isEmpty } == isOpen)
        #expect(await rig.on { rig.ears.reads } == [])
    }

    @Test("a write after the end is ignored")
    func writtenAfter() async throws {
        let rig = try await ChannelRig()
        await rig.on { rig.channel.closeAfterFlush() }
        await rig.on {
            rig.write(1)
            rig.channel.corked { rig.write(2) }
            rig.channel.write(shared: ChannelRig.shared(9_000))
        }
        #expect(rig.take() == nil)
        #expect(await rig.on { rig.ears.ends.isEmpty && rig.channel.pendingBytes == 0 })
        #expect(await rig.on { rig.reactor.output.pointee.isEmpty })
    }

    @Test("a peer that does not close its side is dropped after 5 s", arguments: [false, true])
    func pauseLimit(isFull: Bool) async throws {
        let rig = try await ChannelRig()
        let begun = ContinuousClock.now
        await rig.on {
            if isFull {
                rig.fill()
                rig.write(1)
            }
            rig.channel.closeAfterFlush()
        }
        await rig.turn(by: .seconds(3))
        // The reactor's clock also advances in real time.
        let isThere = await rig.on { rig.ears.ends.isEmpty }
        #expect(isThere || ContinuousClock.now - begun > .seconds(1))
        await rig.turn(by: .seconds(2))
        #expect(await rig.on { rig.ears.ends } == [nil])
    }

    // MARK: Over a network

    @Test("a peer is receiving when it has acknowledged more since the last query and output is pending")
    func isPeerTaking() async throws {
        let group = ReactorGroup.acquireExclusive(1)
        let reactor = group.reactors[0]
        let address = SocketAddress(host: "127.0.0.1", port: 0, isIPv6: false)
        let listening = try Socket.open(for: address)
        defer { listening.close() }
        try #require(listening.bind(to: address) == 0 && listening.listen(backlog: 1) == 0)
        let peer = try Socket.open(for: address)
        peer.set(SO_RCVBUF, to: 8 << 10)
        _ = peer.connect(to: try #require(listening.localAddress))
        var ready = pollfd(fd: listening.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, 10_000)
        let accepted = try #require(listening.accept().socket)
        accepted.set(SO_SNDBUF, to: 8 << 10)
        let channel = ByteChannel(accepted, on: reactor)
        func ask() async -> Bool { await reactor.perform { channel.isPeerReading() } }
        await reactor.perform { try! channel.start(RecordingChannelDelegate()) }
        #expect(await reactor.perform { channel.remoteAddress == peer.localAddress })
        #expect(await reactor.perform { channel.localAddress == peer.remoteAddress })
        // No output is pending.
        #expect(await !ask())
        await reactor.perform { channel.write { $0.append([UInt8](repeating: 7, count: 4 << 20)) } }
        // Until the kernel's buffers are full.
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var quiet = 0
        while quiet < 50, !Task.isCancelled { quiet = await ask() ? 0 : quiet + 1 }
        var isTaking = false
        while !isTaking, !Task.isCancelled {
            _ = buffer.withUnsafeMutableBytes { peer.receive(into: $0) }
            isTaking = await ask()
        }
        // The peer no longer reads, so this ends.
        while await ask(), !Task.isCancelled {}
        #expect(await reactor.perform { channel.pendingBytes } > 0)
        // Once all has arrived nothing is pending, though the peer received some since.
        let isAllThere = await eventually {
            while buffer.withUnsafeMutableBytes({ peer.receive(into: $0) }) > 0 {}
            return await reactor.perform { channel.pendingBytes == 0 && channel.socket.delivery?.isWaiting == false }
        }
        #expect(isAllThere)
        #expect(await !ask())
        // A peer whose side has ended is never receiving.
        await reactor.perform { channel.write { $0.append([UInt8](repeating: 7, count: 4 << 20)) } }
        #expect(await !ask())
        await reactor.perform { channel.closeAfterFlush() }
        for _ in 0..<20 {
            _ = buffer.withUnsafeMutableBytes { peer.receive(into: $0) }
            #expect(await !ask())
        }
        await reactor.perform { channel.close() }
        #expect(await !ask())
        peer.close()
        group.releaseExclusive()
    }
}
