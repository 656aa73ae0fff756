import Bytes
import Glibc
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Networking
import Transports

/// A channel on a dedicated reactor, whose clock the test advances, and the socket at its other end.
///
/// `@unchecked Sendable`: channel and delegate are used on the reactor alone, the peer's socket by the test and by the reactor in turn.
final class ChannelRig: @unchecked Sendable {
    /// The reactors of released rigs; they have no other timers.
    private static let free = Mutex<[Reactor]>([])

    let reactor: Reactor
    let channel: ByteChannel
    let peer: Socket
    let ears = RecordingChannelDelegate()

    /// Two ends within this machine's memory: sent bytes have arrived when the call returns.
    init(limits: ChannelLimits = .standard, isStarted: Bool = true) async throws {
        var ends: [Int32] = [-1, -1]
        // Not inherited by the programs that other tests start: they would keep it open.
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw TransportError.system("socketpair", errno, "") }
        reactor = try Self.free.withLock { $0.popLast() } ?? Reactor(name: "rig")
        peer = Socket(descriptor: ends[1])
        channel = ByteChannel(Socket(descriptor: ends[0]), on: reactor)
        let (channel, ears) = (channel, ears)
        channel.limits = limits
        if isStarted { await on { try! channel.start(ears) } }
    }

    /// Closes the peer's socket early.
    func closePeer() {
        // Its number must not be reused during the rig's lifetime.
        let nobody = open("/dev/null", O_RDONLY | O_CLOEXEC)
        dup2(nobody, peer.descriptor)
        close(nobody)
    }

    /// Whether the reactor comes to rest. A check from outside costs no turn; one that came late may still be in progress.
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

    /// Runs `work` on the reactor, after earlier work; its turn has ended when this returns.
    @discardableResult
    func on<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        let result = await reactor.perform(work)
        await reactor.perform {}
        return result
    }

    /// Waits for the end of the current turns.
    func settle() async { await on {} }

    func turn(by duration: Duration) async {
        reactor.advance(by: duration.nanoseconds)
        await settle()
    }

    /// Fills the socket, with nothing pending in the channel.
    func fill() {
        let block = [UInt8](repeating: 9, count: 32 << 10)
        while block.withUnsafeBytes({ channel.socket.send($0) }) > 0 {}
    }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { peer.send($0) } }

    /// The bytes that have arrived at the peer, up to `most`; nil at the end of the stream.
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

/// Records the events of a channel.
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

/// Creates accounts of one budget, and counts them.
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

/// Runs tests on the thread of a dedicated reactor: they neither wait for other tests in the pool nor block them.
struct DedicatedReactor: SuiteTrait, TestTrait, TestScoping {
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

extension Trait where Self == DedicatedReactor {
    static var dedicatedReactor: DedicatedReactor { DedicatedReactor() }
}
