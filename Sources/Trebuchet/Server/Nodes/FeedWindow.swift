internal import Synchronization
internal import TrebuchetCluster

/// The way of shared streams over one line to another node, for all reactors of this one: how many bytes are on it.
final class FeedWindow: Sendable {
    /// Beyond which streams skip versions, or wait.
    static let most = 1 << 20

    private let line: RelayLine
    private let bytes = Atomic<Int>(0)

    init(_ line: RelayLine) { self.line = line }

    /// Bytes that the other node has not taken, as far as it has told.
    var untaken: Int { bytes.load(ordering: .relaxed) }
    var isOpen: Bool { untaken <= Self.most }

    /// Whatever is sent goes this way, and counts: the other node counts all that it takes.
    func send(_ message: [UInt8]) {
        bytes.add(message.count, ordering: .relaxed)
        line.send(message, part: .toClientPart, last: .toClient)
    }

    /// The other node has taken so many.
    ///
    /// - Returns: whether there is room again that there was not.
    func take(_ count: Int) -> Bool {
        var old = untaken
        while true {
            let new = old - min(old, max(0, count))
            let (isDone, found) = bytes.compareExchange(expected: old, desired: new, ordering: .relaxed)
            if isDone { return old > Self.most && new <= Self.most }
            old = found
        }
    }
}

/// What one node was not sent yet of what actors of this one have changed, as too much was on its way there. All that its clients are sent
/// over lines of their own waits behind it, so that no answer comes before what its call has changed.
///
/// What is owed has numbers, in the order in which that began; each is one reactor's.
final class FeedArrears: Sendable {
    private struct State {
        var last: UInt64 = 0
        var owed: [UInt64] = []
        /// What waits for all numbers up to one, which only grows.
        var waiting: [(last: UInt64, body: @Sendable () -> Void)] = []
    }

    /// Bytes that may wait for a node. Who would have more of them wait loses its line.
    private let mostHeld: Int
    private let state = Mutex(State())
    private let count = Atomic<Int>(0)
    private let held = Atomic<Int>(0)

    init(mostHeld: Int = 64 << 20) { self.mostHeld = mostHeld }

    /// Whether nothing is owed. Asked for each message: what a reactor owes is known to those that hear of its calls.
    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    /// Something is owed from now on.
    func begin() -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.owed.append(state.last)
            count.store(state.owed.count, ordering: .relaxed)
            return state.last
        }
    }

    /// It has been sent, or nobody is to get it any more.
    func end(_ number: UInt64) {
        let ready = state.withLock { state in
            state.owed.removeAll { $0 == number }
            count.store(state.owed.count, ordering: .relaxed)
            let first = state.owed.first ?? .max
            let ready = state.waiting.prefix { $0.last < first }
            state.waiting.removeFirst(ready.count)
            return ready
        }
        for waiting in ready { waiting.body() }
    }

    /// Calls `body` once all has been sent that is owed now, from any reactor.
    ///
    /// - Returns: false when nothing is owed; then it is not called.
    func whenSent(_ body: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard !state.owed.isEmpty else { return false }
            state.waiting.append((state.last, body))
            return true
        }
    }

    // MARK: What waits

    /// - Returns: false when it is too much.
    func hold(_ bytes: Int) -> Bool { held.add(bytes, ordering: .relaxed).newValue <= mostHeld }

    func release(_ bytes: Int) { held.subtract(bytes, ordering: .relaxed) }

    /// Those of all nodes to which there are lines.
    final class Book: Sendable {
        private struct Page { weak var arrears: FeedArrears? }

        private let pages = Mutex<[ClusterNode: Page]>([:])

        subscript(node: ClusterNode) -> FeedArrears {
            pages.withLock { pages in
                if let found = pages[node]?.arrears { return found }
                // Nodes come and go.
                pages = pages.filter { $0.value.arrears != nil }
                let made = FeedArrears()
                pages[node] = Page(arrears: made)
                return made
            }
        }
    }
}
