internal import TrebuchetCluster

/// Orders the calls of one client to the actors of a slot when the owner changes. Calls that an owner did not accept go to the
/// next owner before later calls. No call goes to the next owner while a sent call may still be returned.
struct OrderedResend<Call> {
    /// The calls to be sent, the oldest first.
    private(set) var waiting: [(number: UInt64, call: Call)] = []
    /// The numbers of sent calls without a response.
    private(set) var inFlight: Set<UInt64> = []
    /// The node that they were sent to.
    private var node: ClusterNode?
    /// True if sending waits for the outcome of the sent calls, because the other node may return them.
    private(set) var awaitsResponses = false
    /// Incremented each time that no sent calls remain.
    private(set) var round = 0

    var isEmpty: Bool { waiting.isEmpty && inFlight.isEmpty }

    /// - Parameter number: higher for a later call.
    mutating func addCall(_ call: Call, _ number: UInt64) {
        let index = waiting.lastIndex { $0.number < number }.map { $0 + 1 } ?? 0
        waiting.insert((number, call), at: index)
    }

    /// Removes a call that must not be sent any more.
    mutating func remove(_ number: UInt64) { waiting.removeAll { $0.number == number } }

    /// Returns whether waiting calls may be sent to the node; otherwise sending waits for the sent calls.
    mutating func maySend(to node: ClusterNode) -> Bool {
        if inFlight.isEmpty { return true }
        awaitsResponses = awaitsResponses || self.node != node
        return !awaitsResponses
    }

    /// Removes and returns all waiting calls in order.
    mutating func removeAll() -> [Call] {
        defer { waiting = [] }
        return waiting.map(\.call)
    }

    mutating func didSend(_ number: UInt64, to node: ClusterNode) {
        self.node = node
        inFlight.insert(number)
    }

    /// Handles a call that was answered or abandoned.
    mutating func didEnd(_ number: UInt64) {
        guard inFlight.remove(number) != nil, inFlight.isEmpty else { return }
        clearInFlight()
    }

    /// Queues a call again that the owner did not accept.
    mutating func requeue(_ call: Call, _ number: UInt64) {
        addCall(call, number)
        guard inFlight.contains(number) else { return }
        awaitsResponses = true
        didEnd(number)
    }

    /// Ignores the sent calls from now on.
    mutating func clearInFlight() {
        inFlight = []
        awaitsResponses = false
        round &+= 1
    }
}

/// The calls of a client to one slot that wait for its owner, and those sent to it.
final class SlotSendState {
    let slot: ClusterSlot
    var calls = OrderedResend<ForwardedCall>()
    /// The number of reactors of this node that may have earlier calls of the client and do not know yet whether they run here.
    var crossings = 0
    /// True if an owner lookup is in progress.
    var isLookingUpOwner = false
    /// The waiter of the lookup.
    var waiter: SlotLookupWaiter?
    /// True if a timer will check again whether calls may be sent.
    var isTimed = false

    init(_ slot: ClusterSlot) { self.slot = slot }

    /// True if it has no call, and nothing is in progress for it.
    var isEmpty: Bool { calls.isEmpty && !isLookingUpOwner && !isTimed && crossings == 0 }

    /// Cancels the owner lookup.
    func cancelOwnerLookup() {
        waiter?.cancel()
        (isLookingUpOwner, waiter) = (false, nil)
    }
}
