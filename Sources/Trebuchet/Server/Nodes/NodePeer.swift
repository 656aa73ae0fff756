internal import TrebuchetCluster

/// What a node knows of another one with which it exchanges messages: what waits for that one, and what is known of lost messages.
struct NodePeer {
    struct Waiting {
        let frame: RelayFrame
        /// Set for a frame whose leaving is waited for.
        let departure: Departure?
    }

    /// What is to be done with a message that has come.
    struct Arrival: Equatable {
        /// Whether lines that there are end: the other node has lost something.
        var endsLines = false
        /// Whether something that the other has sent is missing.
        var hasGap = false
        /// Whether its frames are for lines that have ended.
        var isLate = false
    }

    /// From `first` on: what is before has gone.
    private var queue: [Waiting?] = []
    private var first = 0
    private(set) var waitingBytes = 0
    var isSending = false
    /// This node's epoch with that one, and the other's; 0 as long as nothing has come from there.
    private(set) var own: UInt64
    private(set) var theirs: UInt64 = 0
    /// Whether the other one does not know of this node's epoch yet, and whether it is to be told also when nothing else goes there.
    private var isToBeTold = false
    private var isToldAlone = false
    private var sent: UInt64 = 0
    /// The number of the last message before this node's epoch began.
    private var last: UInt64 = 0
    private var received: UInt64 = 0
    /// The number of the last message whose frames were handed on.
    var handled: UInt64 = 0
    var isLeaving = false
    /// How often in a row it was not among those that live.
    var absences = 0
    /// Whether the node is known to be gone while something is on the way to it, of which it is not known yet whether it arrives.
    var isGone = false

    /// - Parameter epoch: greater than all before; even, as the first between two nodes is.
    init(epoch: UInt64) { own = epoch }

    var waiting: some Sequence<Waiting> { queue[first...].lazy.compactMap { $0 } }

    // MARK: Out

    /// - Returns: whether sending begins with these.
    mutating func add(_ frames: [RelayFrame], _ departure: Departure?) -> Bool {
        for frame in frames {
            queue.append(Waiting(frame: frame, departure: departure))
            waitingBytes += frame.byteCount
        }
        defer { isSending = true }
        return !isSending
    }

    /// Lets go of what waits, and gives it.
    @discardableResult
    mutating func clear() -> [Waiting] {
        defer { (queue, first, waitingBytes, isToldAlone) = ([], 0, 0, false) }
        return Array(waiting)
    }

    /// Lets go of some of what waits.
    mutating func remove(where isGone: (Waiting) -> Bool) {
        let kept = waiting.filter { !isGone($0) }
        waitingBytes = kept.reduce(0) { $0 + $1.frame.byteCount }
        (queue, first) = (kept, 0)
    }

    /// The next message; nil when nothing waits, and then sending is over.
    ///
    /// - Parameter most: bytes of its frames, unless it has one alone.
    mutating func next(_ most: Int) -> (number: UInt64, epochs: RelayMessage.Epochs, waiting: [Waiting])? {
        guard first < queue.count || isToldAlone else {
            isSending = false
            return nil
        }
        isToldAlone = false
        var taken: [Waiting] = []
        var bytes = 0
        while first < queue.count, let waiting = queue[first],
            taken.isEmpty || bytes + waiting.frame.byteCount <= most
        {
            bytes += waiting.frame.byteCount
            taken.append(waiting)
            queue[first] = nil
            first += 1
        }
        waitingBytes -= bytes
        // Half of it at a time, so that each is moved once on average.
        if first * 2 > queue.count {
            queue.removeFirst(first)
            first = 0
        }
        sent += 1
        return (sent, RelayMessage.Epochs(sender: own, receiver: theirs, last: last), taken)
    }

    // MARK: Losses

    /// Something was lost: what the other sends without knowing it is late.
    ///
    /// - Parameter epoch: greater than all before; odd.
    mutating func begin(_ epoch: UInt64) {
        (own, last) = (epoch, sent)
        isToBeTold = true
    }

    /// The other one was sent these.
    mutating func didTell(_ epochs: RelayMessage.Epochs) { if epochs.sender == own { isToBeTold = false } }

    /// Whether sending begins, to tell the other one of this node's epoch and nothing else.
    mutating func beginTelling() -> Bool {
        guard isToBeTold else { return false }
        return beginTellingAlone()
    }

    /// Whether sending begins though nothing waits, so that the other one sees whether the last message is missing.
    mutating func beginCheck() -> Bool { isSending ? false : beginTellingAlone() }

    private mutating func beginTellingAlone() -> Bool {
        isToldAlone = true
        defer { isSending = true }
        return !isSending
    }

    // MARK: In

    mutating func take(_ number: UInt64, _ epochs: RelayMessage.Epochs) -> Arrival {
        // On the way since before the other has lost something, of which it has told already.
        guard epochs.sender >= theirs else { return Arrival(isLate: true) }
        var arrival = Arrival()
        if epochs.sender > theirs {
            arrival.endsLines = theirs > 0 || epochs.sender % 2 == 1
            (theirs, received) = (epochs.sender, epochs.last)
        }
        // The first of an epoch too may be missing: lines that it opened are none here.
        arrival.hasGap = number != received &+ 1
        received = number
        // Who has heard nothing from here yet cannot know of a loss either.
        let knows = epochs.receiver == own || epochs.receiver == 0 && own % 2 == 0
        if !knows { (arrival.isLate, isToBeTold) = (true, true) }
        if arrival.hasGap { arrival.isLate = true }
        return arrival
    }
}
