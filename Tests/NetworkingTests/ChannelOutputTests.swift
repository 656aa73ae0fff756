import Bytes
import Glibc
import Synchronization
import Testing

@testable import Networking
import Transports

@Suite("What a channel sends and keeps", .timeLimit(.minutes(5)), .serialized, .apartFromOthers)
struct ChannelOutputTests {
    @Test("a channel is writable up to the high mark, and again from the low mark on")
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
        // It is told once, and of the next time again.
        await rig.on { rig.write(0) }
        #expect(await rig.on { ears.becameWritable } == 1)
        await rig.on { rig.write(4_000) }
        #expect(await rig.on { !channel.isWritable })
        while await rig.on({ rig.take()?.isEmpty == false || channel.pendingBytes > 0 }), !Task.isCancelled {}
        #expect(await rig.on { channel.isWritable && ears.becameWritable == 2 && channel.pendingBytes == 0 })
    }

    @Test("a peer that does not read is ended above the limit, with the number of bytes that wait")
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

    @Test("what is written within a corked call leaves when it ends, or when it is more than 128 KiB")
    func corked() async throws {
        let rig = try await ChannelRig()
        let channel = rig.channel
        let counts = await rig.on { () -> [Int?] in
            var counts: [Int?] = []
            channel.corked {
                rig.write(3)
                // Another call inside is part of this one.
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

    @Test("what is written outside leaves at the end of the turn, behind what waits, in order")
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

    @Test("shared bytes are copied below 8 KiB, and kept from there on", arguments: [(8_191, false), (8_192, true)])
    func sharedBytes(count: Int, isKept: Bool) async throws {
        let rig = try await ChannelRig()
        await rig.on { rig.fill() }
        let held = await rig.on { () -> WeakShared in
            let shared = ChannelRig.shared(count)
            rig.channel.write(shared: shared)
            return WeakShared(shared)
        }
        #expect(await rig.on { rig.channel.pendingBytes } == count)
        #expect((held.shared != nil) == isKept)
        await rig.on { rig.channel.close() }
        #expect(held.shared == nil)
    }

    /// `@unchecked Sendable`: written in `init` alone.
    private final class WeakShared: @unchecked Sendable {
        weak var shared: SharedBytes?
        init(_ shared: SharedBytes) { self.shared = shared }
    }

    @Test("what is written to a closed channel goes nowhere, and the closure runs all the same")
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
        // Not even kept where it goes nowhere.
        #expect(ran == 0)
        #expect(await rig.on { rig.channel.pendingBytes } == 0)
        #expect(rig.take() == nil)
    }

    @Test("an error of the socket ends the channel with the name of the call")
    func error() async throws {
        let rig = try await ChannelRig()
        // Its end of the way to the peer, so that reading knows of nothing.
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

    // MARK: What is held

    @Test("what the socket takes at once leaves nothing in the queue")
    func nothingHeld() async throws {
        let rig = try await ChannelRig()
        await rig.on { rig.write(100) }
        #expect(rig.take()?.count == 100)
        #expect(await rig.on { rig.channel.queue.pieceCount } == 0)
    }

    @Test("bytes that wait are counted from 4 KiB on, as they come and go")
    func held() async throws {
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
        // Shared ones are counted where they are made.
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

    @Test("the delegate hears once of what is too much, with what is held counted until the end")
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

    @Test("without accounts nothing is counted")
    func uncounted() async throws {
        let rig = try await ChannelRig()
        await rig.on {
            rig.fill()
            rig.write(100_000)
        }
        #expect(await rig.on { rig.channel.account == nil })
    }

    // MARK: Those who are slow

    @Test("who has more old versions waiting than allowed, and takes fewer than that in 10 s, is ended")
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
        // One timer, however much more comes.
        await rig.on { channel.write(shared: ChannelRig.shared(9_000)) }
        #expect(await rig.on { channel.reactor.liveTimerCount } == 1)
        let begun = ContinuousClock.now
        await rig.turn(by: .seconds(8))
        // Its clock goes on by itself too.
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

    @Test("who takes as much as that gets as much time again, and who has no more waiting is left alone")
    func slowButTaking() async throws {
        let rig = try await ChannelRig(limits: ChannelLimits(sharedBytes: 20_000, sharedPatience: .seconds(10)))
        let channel = rig.channel
        await rig.on {
            rig.fill()
            // Many more than the socket takes when it has room again.
            for _ in 0..<200 { channel.write(shared: ChannelRig.shared(10_000)) }
        }
        #expect(await rig.on { channel.reactor.liveTimerCount } == 1)
        // The socket gives room for what was taken off, and more has gone than the limit.
        while await rig.on({ channel.pendingBytes == 2_000_000 }), !Task.isCancelled {
            await rig.on { _ = rig.take(4_096) }
        }
        await rig.turn(by: .seconds(10))
        #expect(await rig.on { channel.isOpen && channel.reactor.liveTimerCount == 1 })
        // All is taken: the timer finds nothing to do, and none follows.
        while await rig.on({ rig.take()?.isEmpty == false || channel.pendingBytes > 0 }), !Task.isCancelled {}
        await rig.turn(by: .seconds(10))
        #expect(await rig.on { channel.isOpen && channel.reactor.liveTimerCount == 0 })
        // And what was taken counts from anew.
        await rig.on {
            rig.fill()
            for _ in 0..<3 { channel.write(shared: ChannelRig.shared(10_000)) }
        }
        await rig.turn(by: .seconds(10))
        #expect(await rig.on { !channel.isOpen })
    }

    @Test("as much as the limit is enough to take, one byte less is not", arguments: [(0, true), (1, false)])
    func slowAtLimit(missing: Int, isOpen: Bool) async throws {
        let rig = try await ChannelRig(limits: ChannelLimits(sharedBytes: 20_000, sharedPatience: .seconds(10)))
        let channel = rig.channel
        await rig.on {
            rig.fill()
            // Many more than the socket takes when it has room again.
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
