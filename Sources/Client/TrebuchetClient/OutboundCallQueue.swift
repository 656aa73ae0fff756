internal import Platform
internal import TrebuchetWire

/// The in-flight calls of a client, and the queue of calls that wait until the server's limits allow them, in the order of their
/// creation.
struct OutboundCallQueue {
    /// The limits that the server has advertised, or the defaults until then.
    var terms: AdvertisedLimits
    /// The number of calls that were sent over the current connection and have no response.
    private(set) var underWay = 0
    /// The size of these calls, as the server counts them.
    private(set) var bytes = 0
    private var waiting: [PendingCall] = []
    /// The index of the first waiting call; earlier ones have left the queue.
    private var first = 0
    /// A lower bound of the calls from `first` on that ended while they waited.
    private var removedCount = 0

    init(terms: AdvertisedLimits) { self.terms = terms }

    var isEmpty: Bool { first == waiting.count }

    /// Returns whether a call may be sent now.
    ///
    /// - Parameter startingStreams: the number of streams that have not started; the server may count them too.
    func hasRoom(for call: PendingCall, startingStreams: Int) -> Bool {
        // One call at a time may always be sent, whatever the limits.
        if underWay == 0 { return true }
        return underWay < terms.callsPerConnection - min(startingStreams, terms.callsPerConnection - 1)
            && bytes + Self.weight(call) <= terms.callBytesPerConnection
    }

    /// Returns the reason that a call has to wait, for its error.
    func reason(for call: PendingCall) -> String {
        let isFull = bytes + Self.weight(call) > terms.callBytesPerConnection
        let limit =
            isFull
            ? "ServerLimits.calls.bytesPerConnection = \(terms.callBytesPerConnection)"
            : "ServerLimits.calls.perConnection = \(terms.callsPerConnection)"
        return "the server's limit is reached by \(underWay.counted("call")) with \(bytes) bytes in flight (\(limit))"
    }

    mutating func enqueue(_ call: PendingCall) { waiting.append(call) }

    /// Dequeues the first waiting call if the limits allow it.
    mutating func next(startingStreams: Int) -> PendingCall? {
        while first < waiting.count {
            let call = waiting[first]
            guard call.isOver || hasRoom(for: call, startingStreams: startingStreams) else { return nil }
            first += 1
            if first == waiting.count {
                waiting.removeAll(keepingCapacity: waiting.count <= 1_024)
                (first, removedCount) = (0, 0)
            } else if first * 2 > waiting.count, first > 64 {
                waiting.removeFirst(first)
                first = 0
            }
            if !call.isOver { return call }
        }
        return nil
    }

    /// Handles the end of a waiting call. Its entry is removed at the latest when half of the queue has ended.
    mutating func didLeave() {
        guard !isEmpty else { return }
        removedCount += 1
        guard removedCount * 2 > waiting.count - first else { return }
        waiting = waiting[first...].filter { !$0.isOver }
        (first, removedCount) = (0, 0)
    }

    mutating func didSend(_ call: PendingCall) {
        underWay += 1
        bytes += Self.weight(call)
    }

    /// Handles the end of a sent call, by a response or because its caller no longer waits.
    mutating func didEnd(_ call: PendingCall) {
        underWay -= 1
        bytes -= Self.weight(call)
    }

    /// Handles the loss or the replacement of the connection: no calls are in flight.
    mutating func removeAll() { self = OutboundCallQueue(terms: terms) }

    private static func weight(_ call: PendingCall) -> Int { call.byteCount + AdvertisedLimits.callOverhead }
}
