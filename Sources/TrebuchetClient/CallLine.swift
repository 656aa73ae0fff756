internal import TrebuchetWire

/// What a client has under way at its server, and the calls that wait until there is room for them there, in the order in
/// which they were made.
struct CallLine {
    /// What the server has said of itself; its defaults until then.
    var terms: ServerTerms
    /// Calls that were sent over the connection of now and are not answered.
    private(set) var underWay = 0
    /// Bytes of these, as the server counts them.
    private(set) var bytes = 0
    private var waiting: [PendingCall] = []
    /// Those before have left.
    private var first = 0
    /// Calls behind `first` that have ended while they waited, at least.
    private var goneCount = 0

    init(terms: ServerTerms) { self.terms = terms }

    var isEmpty: Bool { first == waiting.count }

    /// Whether a call may be sent now.
    ///
    /// - Parameter beginnings: streams that have not begun yet; the server may count them too.
    func hasRoom(for call: PendingCall, beside beginnings: Int) -> Bool {
        // Whatever the server says: one at a time may try.
        if underWay == 0 { return true }
        return underWay < terms.callsPerConnection - min(beginnings, terms.callsPerConnection - 1)
            && bytes + Self.weight(call) <= terms.callBytesPerConnection
    }

    /// Why a call has to wait, for its error.
    func reason(for call: PendingCall) -> String {
        let isFull = bytes + Self.weight(call) > terms.callBytesPerConnection
        let limit =
            isFull
            ? "ServerLimits.callBytesPerConnection there: \(terms.callBytesPerConnection)"
            : "ServerLimits.callsPerConnection there: \(terms.callsPerConnection)"
        return "\(underWay) calls of \(bytes) bytes were under way, and the server takes no more at once (\(limit))"
    }

    mutating func add(_ call: PendingCall) { waiting.append(call) }

    /// Takes the call that is first in the line, when there is room for it.
    mutating func next(beside beginnings: Int) -> PendingCall? {
        while first < waiting.count {
            let call = waiting[first]
            guard call.isOver || hasRoom(for: call, beside: beginnings) else { return nil }
            first += 1
            if first == waiting.count {
                waiting.removeAll(keepingCapacity: waiting.count <= 1_024)
                (first, goneCount) = (0, 0)
            } else if first * 2 > waiting.count, first > 64 {
                waiting.removeFirst(first)
                first = 0
            }
            if !call.isOver { return call }
        }
        return nil
    }

    /// A call has ended that was in the line: its place is given up, at the latest when half of the line has gone.
    mutating func didLeave() {
        guard !isEmpty else { return }
        goneCount += 1
        guard goneCount * 2 > waiting.count - first else { return }
        waiting = waiting[first...].filter { !$0.isOver }
        (first, goneCount) = (0, 0)
    }

    mutating func didSend(_ call: PendingCall) {
        underWay += 1
        bytes += Self.weight(call)
    }

    /// A call that was sent has its answer, or nobody waits for it any more.
    mutating func didEnd(_ call: PendingCall) {
        underWay -= 1
        bytes -= Self.weight(call)
    }

    /// The connection is gone, or another one has taken its place: nothing is under way.
    mutating func removeAll() { self = CallLine(terms: terms) }

    private static func weight(_ call: PendingCall) -> Int { call.byteCount + ServerTerms.callOverhead }
}
