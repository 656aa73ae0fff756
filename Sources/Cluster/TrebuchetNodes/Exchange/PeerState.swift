internal import TrebuchetCluster

/// The state of the message exchange with one other node: waiting frames, epochs, and message numbers for loss detection.
struct PeerState {
    /// A frame that waits to be sent.
    struct Waiting {
        let frame: NodeFrame
        /// Set for a frame whose sending is observed.
        let sendCompletion: SendCompletion?
    }

    /// The handling of a received message.
    struct ReceiveAction: Equatable {
        /// True if existing channels end, because the other node has lost messages.
        var endsChannels = false
        /// True if messages of the other node are missing.
        var hasGap = false
        /// True if the frames of the message belong to channels that have ended.
        var isLate = false
    }

    /// The queue from index `first`; earlier elements were sent.
    private var queue: [Waiting?] = []
    private var first = 0
    private(set) var waitingBytes = 0
    var isSending = false
    /// This node's epoch with the peer, and the peer's epoch; 0 until a message of the peer arrives.
    private(set) var ownEpoch: UInt64
    private(set) var peerEpoch: UInt64 = 0
    /// True if the peer has not acknowledged this node's epoch.
    private var mustSendEpoch = false
    /// True if the epoch must be sent even without frames.
    private var sendsEpochOnly = false
    private var sent: UInt64 = 0
    /// The number of the last message before this node's epoch began.
    private var lastBeforeEpoch: UInt64 = 0
    private var received: UInt64 = 0
    /// The number of the last message of the peer that was not late, and the same at the start of this node's epoch; nil if
    /// unknown. The peer's later messages without knowledge of the epoch are late.
    private var accepted: UInt64?
    private var acceptedBeforeEpoch: UInt64?
    /// The numbers of the newest messages with requests on this node's channels, with those channels.
    private var requests: [(message: UInt64, channelID: UInt64)] = []
    /// The maximum number of noted requests; earlier ones count as accepted.
    private static let maximumRequests = 4_096
    /// The number of the last message whose frames were passed on.
    var handled: UInt64 = 0
    var isLeaving = false
    /// True if the node has reported that it accepts no further messages.
    var hasStopped = false
    /// The number of consecutive readings of the live nodes without it.
    var absences = 0
    /// True if the node has left while the delivery of a message to it is undecided.
    var hasLeft = false

    /// - Parameter epoch: greater than all before; even, as the first epoch between two nodes.
    init(epoch: UInt64) { ownEpoch = epoch }

    var waiting: some Sequence<Waiting> { queue[first...].lazy.compactMap { $0 } }

    // MARK: Sending

    /// Queues frames.
    ///
    /// - Returns: whether the caller must start sending.
    mutating func enqueueFrames(_ frames: [NodeFrame], _ completion: SendCompletion?) -> Bool {
        for frame in frames {
            queue.append(Waiting(frame: frame, sendCompletion: completion))
            waitingBytes += frame.byteCount
        }
        defer { isSending = true }
        return !isSending
    }

    /// Removes and returns all waiting frames.
    @discardableResult
    mutating func clear() -> [Waiting] {
        requests = []
        defer { (queue, first, waitingBytes, sendsEpochOnly) = ([], 0, 0, false) }
        return Array(waiting)
    }

    /// Removes some waiting frames.
    mutating func remove(where isRemoved: (Waiting) -> Bool) {
        let remaining = waiting.filter { !isRemoved($0) }
        waitingBytes = remaining.reduce(0) { $0 + $1.frame.byteCount }
        (queue, first) = (remaining, 0)
    }

    /// Returns the next message; nil if nothing waits, and sending ends.
    ///
    /// - Parameter most: the maximum size of its frames in bytes, unless it has a single frame.
    mutating func next(_ most: Int) -> (number: UInt64, epochs: NodeMessage.Epochs, waiting: [Waiting])? {
        guard first < queue.count || sendsEpochOnly else {
            isSending = false
            return nil
        }
        sendsEpochOnly = false
        var batch: [Waiting] = []
        var bytes = 0
        while first < queue.count, let waiting = queue[first],
            batch.isEmpty || bytes + waiting.frame.byteCount <= most
        {
            bytes += waiting.frame.byteCount
            batch.append(waiting)
            queue[first] = nil
            first += 1
        }
        waitingBytes -= bytes
        // Remove half of the array at a time, so that each element is moved once on average.
        if first * 2 > queue.count {
            queue.removeFirst(first)
            first = 0
        }
        sent += 1
        for waiting in batch where waiting.frame.kind == .toOwner { requests.append((sent, waiting.frame.channelID)) }
        if requests.count > Self.maximumRequests { requests.removeFirst(requests.count - Self.maximumRequests / 2) }
        if mustSendEpoch, let acceptedBeforeEpoch {
            batch.insert(Waiting(frame: .allEnded(accepted: acceptedBeforeEpoch), sendCompletion: nil), at: 0)
        }
        return (sent, NodeMessage.Epochs(sender: ownEpoch, receiver: peerEpoch, last: lastBeforeEpoch), batch)
    }

    /// Returns the channels of the requests that the peer has not accepted, according to its report of a loss.
    func requests(after accepted: UInt64) -> some Sequence<UInt64> {
        requests.lazy.filter { $0.message > accepted }.map(\.channelID)
    }

    // MARK: Losses

    /// Starts a new epoch after a loss: messages that the peer sends without knowing it are late.
    ///
    /// - Parameter epoch: greater than all before; odd.
    mutating func startEpoch(_ epoch: UInt64) {
        (ownEpoch, lastBeforeEpoch, acceptedBeforeEpoch) = (epoch, sent, accepted)
        mustSendEpoch = true
    }

    /// Records that these epochs were delivered to the peer.
    mutating func didDeliver(_ epochs: NodeMessage.Epochs) { if epochs.sender == ownEpoch { mustSendEpoch = false } }

    /// Returns whether the caller must start sending, to deliver this node's epoch only.
    mutating func beginSendingEpoch() -> Bool {
        guard mustSendEpoch else { return false }
        return beginSendingEpochOnly()
    }

    /// Returns whether the caller must start sending without waiting frames, so that the peer can detect a missing last
    /// message.
    mutating func beginCheck() -> Bool { isSending ? false : beginSendingEpochOnly() }

    private mutating func beginSendingEpochOnly() -> Bool {
        sendsEpochOnly = true
        defer { isSending = true }
        return !isSending
    }

    // MARK: Receiving

    mutating func receive(_ number: UInt64, _ epochs: NodeMessage.Epochs) -> ReceiveAction {
        // Sent before the peer's loss, which the peer has already reported.
        guard epochs.sender >= peerEpoch else { return ReceiveAction(isLate: true) }
        var action = ReceiveAction()
        if epochs.sender > peerEpoch {
            action.endsChannels = peerEpoch > 0 || epochs.sender % 2 == 1
            (peerEpoch, received) = (epochs.sender, epochs.last)
        }
        // The first message of an epoch may be missing too: the channels that it opened do not exist here.
        action.hasGap = number != received &+ 1
        received = number
        // A peer that has received nothing from this node cannot know of a loss.
        let knows = epochs.receiver == ownEpoch || epochs.receiver == 0 && ownEpoch % 2 == 0
        if !knows { (action.isLate, mustSendEpoch) = (true, true) }
        if action.hasGap { action.isLate = true }
        if !action.isLate { accepted = number }
        return action
    }
}
