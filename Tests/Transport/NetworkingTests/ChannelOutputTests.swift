import Bytes
import Glibc
import Synchronization
import Testing

@testable import Networking
import Transports

@Suite("Output of a channel", .timeLimit(.minutes(5)), .serialized, .dedicatedReactor)
struct ChannelOutputTests {
    @Test("a channel is writable up to the high watermark, and again from the low watermark on")
    func marks() async throws {
        let rig = try await ChannelRig()
        let (channel, ears) = (rig.channel, rig.ears)
        await rig.on { rig.fill() }
        channel.limits = ChannelLimits(high: 1_000, low: 400)
        #expect(
            await rig.on {
                rig.write(1_000)
                return channel.isWritable
            })
        #expect(await rig.on { channel.isWritable && channel.pendingBytes == 1_000 })
        // At once, not at the end of the turn.
        #expect(
            await rig.on {
                rig.write(1)
                return !channel.isWritable
            })
        #expect(await rig.on { channel.pendingBytes } == 1_001)
        channel.limits = ChannelLimits(high: 5_000, low: 1_000)
        await rig.on { rig.write(0) }
        #expect(await rig.on { !channel.isWritable && ears.becameWritable == 0 })
        channel.limits = ChannelLimits(high: 5_000, low: 1_001)
        await rig.on { rig.write(0) }
        #expect(await rig.on { channel.isWritable && ears.becameWritable == 1 })
        // It is notified once, and the next time again.
        await rig.on { rig.write(0) }
        #expect(await rig.on { ears.becameWritable } == 1)
        await rig.on { rig.write(4_000) }
        #expect(await rig.on { !channel.isWritable })
        while await rig.on({ rig.take()?.isEmpty == false || channel.pendingBytes > 0 }), !Task.isCancelled {}
        #expect(await rig.on { channel.isWritable && ears.becameWritable == 2 && channel.pendingBytes == 0 })
    }

    @Test("a peer that does not read is disconnected above the limit, with the number of pending bytes")
    func limit() async throws {
        let rig = try await ChannelRig(limits: ChannelLimits(high: 100, low: 50, limit: 2_000))
        let (channel, ears) = (rig.channel, rig.ears)
        await rig.on {
            rig.fill()
            rig.write(2_000)
        }
        #expect(await rig.on { channel.isOpen && ears.ends.isEmpty })
        await rig.on { rig.write(1) }
        #expect(await rig.on { !channel.isOpen && channel.pendingBytes == 0 && channel.delegate == nil })
        let ends = await rig.on { ears.ends }
        #expect(ends == [TransportError(.closed, "the peer reads too slowly: 2001 bytes are queued")])
    }

    @Test("output within a corked call is sent when the call ends, or above 128 KiB")
    func corked() async throws {
        let rig = try await ChannelRig()
        let channel = rig.channel
        let counts = await rig.on { () -> [Int?] in
            var counts: [Int?] = []
            channel.corked {
                rig.write(3)
                // A nested call is part of this one.
                channel.corked { rig.write(4) }
                counts.append(channel.pendingBytes)
                counts.append(rig.take()?.count)
            }
            counts.append(rig.take()?.count)
            channel.corked {
                rig.write(128 << 10)
                counts.append(rig.take()?.count)
                rig.write(1)
                counts.append((rig.take(1)?.count))
            }
            return counts
        }
        #expect(counts == [7, 0, 7, 0, 1])
        #expect(await rig.on { channel.reactor.corked == nil && channel.reactor.output.pointee.isEmpty })
    }

    @Test("output outside of corked calls is sent at the end of the turn, behind pending output, in order")
    func order() async throws {
        let rig = try await ChannelRig()
        let channel = rig.channel
        let early = await rig.on { () -> Int? in
            channel.write { $0.append([1, 2] as [UInt8]) }
            return rig.take()?.count
        }
        #expect(early == 0)
        #expect(rig.take() == [1, 2])
        await rig.on {
            channel.write { $0.append([3] as [UInt8]) }
            channel.corked {
                channel.write { $0.append([4] as [UInt8]) }
                channel.write(shared: ChannelRig.shared(9_000))
                channel.write { $0.append([6] as [UInt8]) }
            }
            channel.write { $0.append([7] as [UInt8]) }
        }
        #expect(rig.take() == [3, 4] + [UInt8](repeating: 5, count: 9_000) + [6, 7])
    }

    @Test(
        "shared bytes are copied below 8 KiB, and referenced from there on", arguments: [(8_191, false), (8_192, true)])
    func sharedBytes(count: Int, isShared: Bool) async throws {
        let rig = try await ChannelRig()
        await rig.on { rig.fill() }
        let retained = await rig.on { () -> WeakShared in
            let shared = ChannelRig.shared(count)
            rig.channel.write(shared: shared)
            return WeakShared(shared)
        }
        #expect(await rig.on { rig.channel.pendingBytes } == count)
        #expect((retained.shared != nil) == isShared)
        await rig.on { rig.channel.close() }
        #expect(retained.shared == nil)
    }

    /// `@unchecked Sendable`: written in `init` alone.
    private final class WeakShared: @unchecked Sendable {
        weak var shared: SharedBytes?
        init(_ shared: SharedBytes) { self.shared = shared }
    }

    @Test("output to a closed channel is dropped, and the closure runs nevertheless")
    func closed() async throws {
        let rig = try await ChannelRig()
        let ran = await rig.on { () -> Int in
            rig.channel.close()
            rig.write(5_000)
            rig.channel.write(shared: ChannelRig.shared(9_000))
            rig.write(3)
            var ran = 0
            rig.channel.write { ran = $0.count }
            rig.channel.corked { rig.write(7) }
            return ran
        }
        // Not even retained when it is dropped.
        #expect(ran == 0)
        #expect(await rig.on { rig.channel.pendingBytes } == 0)
        #expect(rig.take() == nil)
    }

    @Test("an error of the socket ends the channel with the name of the system call")
    func error() async throws {
        let rig = try await ChannelRig()
        // Shuts down its sending side, so that reading notices nothing.
        await rig.on {
            rig.channel.socket.shutdownWriting()
            rig.channel.corked { rig.write(1) }
        }
        let ends = await rig.on { rig.ears.ends }
        #expect(ends == [.system("send", EPIPE, "connection to peer")])
        #expect(await rig.on { rig.channel.delegate == nil && rig.channel.reactor.output.pointee.isEmpty })

        let other = try await ChannelRig()
        await other.on {
            other.channel.socket.shutdownWriting()
            other.write(1)
        }
        let others = await other.on { other.ears.ends }
        #expect(others == [.system("send", EPIPE, "connection to peer")])
    }

    // MARK: Buffered output

    @Test("output that the socket accepts at once leaves the queue empty")
    func retainsNothing() async throws {
        let rig = try await ChannelRig()
        await rig.on { rig.write(100) }
        #expect(rig.take()?.count == 100)
        #expect(await rig.on { rig.channel.queue.pieceCount } == 0)
    }

    @Test("pending bytes are accounted from 4 KiB on, as they grow and shrink")
    func accountedBytes() async throws {
        let accounts = RecordingMemoryAccounts()
        let rig = try await ChannelRig(limits: ChannelLimits(accounts: accounts))
        await rig.on {
            rig.fill()
            rig.write(4_095)
        }
        #expect(accounts.made.load(ordering: .relaxed) == 0)
        await rig.on { rig.write(1) }
        #expect(accounts.budget.usedBytes == 4_096)
        await rig.on { rig.write(100) }
        #expect(accounts.budget.usedBytes == 4_196)
        // Shared bytes are accounted where they are made.
        await rig.on { rig.channel.write(shared: ChannelRig.shared(10_000)) }
        #expect(accounts.budget.usedBytes == 4_196)
        while await rig.on({ rig.take()?.isEmpty == false || rig.channel.pendingBytes > 0 }), !Task.isCancelled {}
        #expect(accounts.budget.usedBytes == 0)
        await rig.on {
            rig.fill()
            rig.write(9_000)
        }
        #expect(accounts.budget.usedBytes == 9_000)
        await rig.on { rig.channel.close() }
        #expect(accounts.budget.usedBytes == 0)
        #expect(accounts.made.load(ordering: .relaxed) == 1)
        #expect(await rig.on { rig.channel.account == nil })
    }

    @Test("the delegate is notified once of an exceeded memory limit, and the bytes count until the end")
    func excess() async throws {
        let accounts = RecordingMemoryAccounts(limit: 10_000)
        let rig = try await ChannelRig(limits: ChannelLimits(accounts: accounts))
        await rig.on {
            rig.fill()
            rig.write(10_000)
        }
        #expect(await rig.on { rig.ears.excesses.isEmpty })
        await rig.on { rig.write(1) }
        await rig.settle()
        #expect(await rig.on { rig.ears.excesses } == [MemoryLimitExceeded(.connection, 10_000)])
        #expect(await rig.on { rig.channel.isOpen })
        #expect(accounts.budget.usedBytes == 10_001)
    }

    @Test("without accounts no bytes are accounted")
    func uncounted() async throws {
        let rig = try await ChannelRig()
        await rig.on {
            rig.fill()
            rig.write(100_000)
        }
        #expect(await rig.on { rig.channel.account == nil })
    }

    // MARK: Slow peers

    @Test("a peer with more old versions pending than allowed, that receives less than that in 10 s, is disconnected")
    func slow() async throws {
        let rig = try await ChannelRig(limits: ChannelLimits(sharedBytes: 20_000, sharedPatience: .seconds(10)))
        let (channel, ears) = (rig.channel, rig.ears)
        await rig.on {
            rig.fill()
            channel.write(shared: ChannelRig.shared(20_000))
        }
        // As many as are allowed.
        #expect(await rig.on { channel.reactor.liveTimerCount } == 0)
        await rig.on { channel.write(shared: ChannelRig.shared(9_000)) }
        // One timer, however much more is written.
        await rig.on { channel.write(shared: ChannelRig.shared(9_000)) }
        #expect(await rig.on { channel.reactor.liveTimerCount } == 1)
        let begun = ContinuousClock.now
        await rig.turn(by: .seconds(8))
        // The reactor's clock also advances in real time.
        let isOpen = await rig.on { channel.isOpen }
        #expect(isOpen || ContinuousClock.now - begun > .seconds(1))
        await rig.turn(by: .seconds(2))
        let message = await rig.on { ears.ends.first??.message }
        #expect(
            message
                == "the peer reads too slowly: 38000 bytes of old versions are queued, and it read 0 bytes in 10.0 seconds;"
                + " the limit is 20000 (sharedBytesUnsent)")
        #expect(await rig.on { channel.reactor.liveTimerCount } == 0)
    }

    @Test("a peer that receives as much gets the same time again, and a peer with less pending has no limit")
    func slowButReading() async throws {
        let rig = try await ChannelRig(limits: ChannelLimits(sharedBytes: 20_000, sharedPatience: .seconds(10)))
        let channel = rig.channel
        await rig.on {
            rig.fill()
            // Many more than the socket accepts when it has room again.
            for _ in 0..<200 { channel.write(shared: ChannelRig.shared(10_000)) }
        }
        #expect(await rig.on { channel.reactor.liveTimerCount } == 1)
        // The socket has room again, and more than the limit was sent.
        while await rig.on({ channel.pendingBytes == 2_000_000 }), !Task.isCancelled {
            await rig.on { _ = rig.take(4_096) }
        }
        await rig.turn(by: .seconds(10))
        #expect(await rig.on { channel.isOpen && channel.reactor.liveTimerCount == 1 })
        // All is received: the timer finds nothing pending, and is not repeated.
        while await rig.on({ rig.take()?.isEmpty == false || channel.pendingBytes > 0 }), !Task.isCancelled {}
        await rig.turn(by: .seconds(10))
        #expect(await rig.on { channel.isOpen && channel.reactor.liveTimerCount == 0 })
        // The count of received bytes restarts.
        await rig.on {
            rig.fill()
            for _ in 0..<3 { channel.write(shared: ChannelRig.shared(10_000)) }
        }
        await rig.turn(by: .seconds(10))
        #expect(await rig.on { !channel.isOpen })
    }

    @Test("receiving as much as the limit is enough, one byte less is not", arguments: [(0, true), (1, false)])
    func slowAtLimit(missing: Int, isOpen: Bool) async throws {
        let rig = try await ChannelRig(limits: ChannelLimits(sharedBytes: 20_000, sharedPatience: .seconds(10)))
        let channel = rig.channel
        await rig.on {
            rig.fill()
            // Many more than the socket accepts when it has room again.
            for _ in 0..<200 { channel.write(shared: ChannelRig.shared(10_000)) }
        }
        while await rig.on({ channel.pendingBytes }) == 2_000_000, !Task.isCancelled {
            await rig.on { _ = rig.take(4_096) }
        }
        let taken = 2_000_000 - (await rig.on { channel.pendingBytes })
        channel.limits = ChannelLimits(sharedBytes: taken + missing, sharedPatience: .seconds(10))
        await rig.turn(by: .seconds(10))
        #expect(await rig.on { channel.isOpen } == isOpen)
        #expect(await rig.on { channel.reactor.liveTimerCount } == (isOpen ? 1 : 0))
    }
}
