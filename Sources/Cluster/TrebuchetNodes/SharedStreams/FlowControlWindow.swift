internal import Synchronization
internal import TrebuchetCluster

/// The flow-control window of one shared-stream channel, for all reactors of this node: counts the bytes in transit.
final class FlowControlWindow: Sendable {
    /// The number of bytes in transit above which streams skip versions or wait.
    static let most = 1 << 20

    private let channel: NodeChannel
    private let bytes = Atomic<Int>(0)

    init(_ channel: NodeChannel) { self.channel = channel }

    /// The bytes in transit: not yet acknowledged by the other node.
    var unacknowledgedBytes: Int { bytes.load(ordering: .relaxed) }
    var isOpen: Bool { unacknowledgedBytes <= Self.most }

    /// Sends a message and counts it. All messages of the channel must use this, since the other node counts all that it
    /// receives.
    func send(_ message: [UInt8]) {
        bytes.add(message.count, ordering: .relaxed)
        channel.send(message, part: .toClientPart, last: .toClient)
    }

    /// Handles an acknowledgement of `count` bytes.
    ///
    /// - Returns: whether the window has opened.
    func acknowledge(_ count: Int) -> Bool {
        var old = unacknowledgedBytes
        while true {
            let new = old - min(old, max(0, count))
            let (isDone, found) = bytes.compareExchange(expected: old, desired: new, ordering: .relaxed)
            if isDone { return old > Self.most && new <= Self.most }
            old = found
        }
    }
}

/// Stream changes of this node's actors that were not yet sent to another node because its window is full. Other messages to
/// that node's clients wait behind them, so that no response arrives before the changes of its call.
///
/// The deliveries are numbered in the order in which they began; each belongs to one reactor.
final class PendingDeliveries: Sendable {
    /// The pending deliveries and the waiting closures.
    private struct State {
        var last: UInt64 = 0
        var pending: [UInt64] = []
        /// Closures that wait for all deliveries up to a number; the numbers only increase.
        var waiting: [(last: UInt64, body: @Sendable () -> Void)] = []
    }

    /// The maximum number of bytes that may wait for a node. A connection that would exceed it loses its channel.
    private let maximumBufferedBytes: Int
    private let state = Mutex(State())
    private let count = Atomic<Int>(0)
    private let reservedBytes = Atomic<Int>(0)

    init(maximumBufferedBytes: Int = 64 << 20) { self.maximumBufferedBytes = maximumBufferedBytes }

    /// True if no delivery is pending. Checked for each message, so it needs no lock; the pending deliveries of a
    /// reactor are visible to the reactors that receive results of its calls.
    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    /// Starts a pending delivery and returns its number.
    func startDelivery() -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.pending.append(state.last)
            count.store(state.pending.count, ordering: .relaxed)
            return state.last
        }
    }

    /// Ends a delivery that was sent or is no longer needed.
    func endDelivery(_ number: UInt64) {
        let ready = state.withLock { state in
            state.pending.removeAll { $0 == number }
            count.store(state.pending.count, ordering: .relaxed)
            let first = state.pending.first ?? .max
            let ready = state.waiting.prefix { $0.last < first }
            state.waiting.removeFirst(ready.count)
            return ready
        }
        for waiting in ready { waiting.body() }
    }

    /// Calls `body` once all deliveries that are pending now have been sent, from any reactor.
    ///
    /// - Returns: false if none is pending; `body` is not called then.
    func whenSent(_ body: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard !state.pending.isEmpty else { return false }
            state.waiting.append((state.last, body))
            return true
        }
    }

    // MARK: Waiting messages

    /// True if messages wait for deliveries.
    var hasWaitingMessages: Bool { reservedBytes.load(ordering: .relaxed) > 0 }

    /// Reserves bytes for waiting messages.
    ///
    /// - Returns: false if they exceed the limit.
    func reserveBytes(_ bytes: Int) -> Bool {
        reservedBytes.add(bytes, ordering: .relaxed).newValue <= maximumBufferedBytes
    }

    func release(_ bytes: Int) { reservedBytes.subtract(bytes, ordering: .relaxed) }

    /// The pending deliveries of all nodes with channels.
    final class Registry: Sendable {
        /// A weak reference to the deliveries of a node.
        private struct WeakEntry { weak var pendingDeliveries: PendingDeliveries? }

        private let pages = Mutex<[ClusterNode: WeakEntry]>([:])

        /// True if messages for any node wait for deliveries.
        var hasWaitingMessages: Bool {
            pages.withLock { $0.values.contains { $0.pendingDeliveries?.hasWaitingMessages == true } }
        }

        subscript(node: ClusterNode) -> PendingDeliveries {
            pages.withLock { pages in
                if let found = pages[node]?.pendingDeliveries { return found }
                // Remove entries of nodes that have left.
                pages = pages.filter { $0.value.pendingDeliveries != nil }
                let created = PendingDeliveries()
                pages[node] = WeakEntry(pendingDeliveries: created)
                return created
            }
        }
    }
}
