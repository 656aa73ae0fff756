import Bytes
import Glibc
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Networking
import Transports

/// A channel on a reactor that nobody else uses, whose clock the test turns, and the socket at its other end.
///
/// `@unchecked Sendable`: channel and ears are used on the reactor alone, the peer's socket by the test and by the reactor in turn.
final class ChannelRig: @unchecked Sendable {
    /// Those of rigs that have gone; nobody else's timers are on them.
    private static let free = Mutex<[Reactor]>([])

    let reactor: Reactor
    let channel: ByteChannel
    let peer: Socket
    let ears = RecordingChannelDelegate()

    /// Two ends within this machine's memory: what is sent is there when the call returns.
    init(limits: ChannelLimits = .standard, isStarted: Bool = true) async throws {
        var ends: [Int32] = [-1, -1]
        // Not for the programs that other tests start: they would keep it open.
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw TransportError.system("socketpair", errno, "") }
        reactor = try Self.free.withLock { $0.popLast() } ?? Reactor(name: "rig")
        peer = Socket(descriptor: ends[1])
        channel = ByteChannel(Socket(descriptor: ends[0]), on: reactor)
        let (channel, ears) = (channel, ears)
        channel.limits = limits
        if isStarted { await on { try! channel.start(ears) } }
    }

    /// The peer goes before its time.
    func closePeer() {
        // Its number is not for others as long as the rig is there.
        let nobody = open("/dev/null", O_RDONLY | O_CLOEXEC)
        dup2(nobody, peer.descriptor)
        close(nobody)
    }

    /// Whether the reactor comes to wait. A look from outside costs no turn; one that came late may still be under way.
    func isAtRest() async -> Bool {
        let reactor = reactor
        return await eventually {
            let before = reactor.pulse.load(ordering: .sequentiallyConsistent)
            let begun = ContinuousClock.now
            while ContinuousClock.now - begun < .milliseconds(20) {}
            return !Reactor.isWorking(before) && reactor.pulse.load(ordering: .sequentiallyConsistent) == before
        }
    }

    deinit {
        peer.close()
        let (reactor, channel) = (reactor, channel)
        reactor.execute {
            channel.close()
            Self.free.withLock { $0.append(reactor) }
        }
    }

    /// Does it on the reactor, after what came before; the turn that it is done in has ended when this returns.
    @discardableResult
    func on<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        let result = await reactor.perform(work)
        await reactor.perform {}
        return result
    }

    /// Ends what turns are under way.
    func settle() async { await on {} }

    func turn(by duration: Duration) async {
        reactor.advance(by: duration.nanoseconds)
        await settle()
    }

    /// The socket takes no more, and nothing waits in the channel.
    func fill() {
        let block = [UInt8](repeating: 9, count: 32 << 10)
        while block.withUnsafeBytes({ channel.socket.send($0) }) > 0 {}
    }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { peer.send($0) } }

    /// What has come at the peer, up to `most` bytes; nil at the end of the stream.
    func take(_ most: Int = 1 << 20) -> [UInt8]? {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: most)
        while all.count < most {
            let wanted = most - all.count
            let count = buffer.withUnsafeMutableBytes { peer.receive(into: .init(rebasing: $0[..<wanted])) }
            guard count > 0 else { return count == 0 && all.isEmpty ? nil : all }
            all += buffer[..<count]
        }
        return all
    }

    func write(_ count: Int) { channel.write { $0.append([UInt8](repeating: 7, count: count)) } }

    static func shared(_ count: Int) -> SharedBytes {
        [UInt8](repeating: 5, count: count).withUnsafeBytes { SharedBytes($0) }
    }
}

/// Notes what a channel tells.
///
/// `@unchecked Sendable`: used on the channel's reactor alone.
final class RecordingChannelDelegate: ByteChannelDelegate, @unchecked Sendable {
    var reads: [Int] = []
    var received: [UInt8] = []
    var becameWritable = 0
    var ends: [TransportError?] = []
    var excesses: [MemoryLimitExceeded] = []
    var onRead: ((ByteChannel) -> Void)?
    var onBytes: ((ByteChannel, UnsafeMutableRawBufferPointer) -> Void)?

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        reads.append(bytes.count)
        received += bytes
        onRead?(channel)
        onBytes?(channel, bytes)
    }
    func channelDidBecomeWritable(_ channel: ByteChannel) { becameWritable += 1 }
    func channel(_ channel: ByteChannel, exceeds excess: MemoryLimitExceeded) { excesses.append(excess) }
    func channelDidClose(_ channel: ByteChannel, error: TransportError?) { ends.append(error) }
}

/// Makes accounts of one budget, and counts them.
final class RecordingMemoryAccounts: MemoryAccountProvider {
    let budget: MemoryBudget
    let limit: Int
    let made = Atomic<Int>(0)

    init(limit: Int = .max, budget: Int = .max) {
        self.limit = limit
        self.budget = MemoryBudget(limit: budget)
    }

    func makeAccount(for address: SocketAddress?) -> MemoryAccount {
        made.add(1, ordering: .relaxed)
        return MemoryAccount(limit: limit, server: budget)
    }
}

/// Runs tests on the thread of a reactor that they have for themselves: they neither wait for others that have the pool, nor
/// keep it from them.
struct ApartFromOthers: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let group = ReactorGroup.acquireExclusive(1)
        defer { group.releaseExclusive() }
        try await withTaskExecutorPreference(group.reactors[0].tasks) { try await function() }
    }
}

extension Trait where Self == ApartFromOthers {
    static var apartFromOthers: ApartFromOthers { ApartFromOthers() }
}
