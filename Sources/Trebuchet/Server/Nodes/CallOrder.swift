internal import TrebuchetCluster

/// In which order the calls of one client to the actors of a slot go to their owner, where that changes: what an owner has not taken
/// goes to the next one before what came later, and to that nothing goes while something may still come back.
struct CallOrder<Call> {
    /// Those that are to be sent, the first first.
    private(set) var waiting: [(number: UInt64, call: Call)] = []
    /// The numbers of those that were sent and have no answer.
    private var away: Set<UInt64> = []
    /// Where they are.
    private var node: ClusterNode?
    /// Whether what is away is waited for: it may come back.
    private(set) var awaitsReturn = false
    /// Changes whenever nothing is away any more.
    private(set) var round = 0

    var isEmpty: Bool { waiting.isEmpty && away.isEmpty }

    /// - Parameter number: higher for a later one.
    mutating func add(_ call: Call, _ number: UInt64) {
        let place = waiting.lastIndex { $0.number < number }.map { $0 + 1 } ?? 0
        waiting.insert((number, call), at: place)
    }

    /// It is not to be sent any more.
    mutating func remove(_ number: UInt64) { waiting.removeAll { $0.number == number } }

    /// Whether those that wait may go there; else what is away is waited for from now on.
    mutating func mayGo(to node: ClusterNode) -> Bool {
        if away.isEmpty { return true }
        awaitsReturn = awaitsReturn || self.node != node
        return !awaitsReturn
    }

    /// All that wait, in order.
    mutating func takeAll() -> [Call] {
        defer { waiting = [] }
        return waiting.map(\.call)
    }

    mutating func didSend(_ number: UInt64, to node: ClusterNode) {
        self.node = node
        away.insert(number)
    }

    /// A call has its answer, or is given up.
    mutating func didEnd(_ number: UInt64) {
        guard away.remove(number) != nil, away.isEmpty else { return }
        waitForNone()
    }

    /// A call was not taken.
    mutating func didComeBack(_ call: Call, _ number: UInt64) {
        add(call, number)
        guard away.contains(number) else { return }
        awaitsReturn = true
        didEnd(number)
    }

    /// What is away counts no more.
    mutating func waitForNone() {
        away = []
        awaitsReturn = false
        round &+= 1
    }
}

/// What a client has of one slot that waits for its owner, and what that owner has of it.
final class SlotTraffic {
    let slot: ClusterSlot
    var calls = CallOrder<RelayedCall>()
    /// Those that are to be taken up: before all calls, so that they lack little of what those change.
    var streams: [RelayedStream] = []
    /// Those that are to be taken up in a moment: with the first call that comes before.
    var paused: [RelayedStream] = []
    /// How many reactors of this node may have calls of the client's that were before these, and do not know yet whether they run.
    var crossings = 0
    /// Whether the owner is being asked for.
    var isAsking = false
    /// Where the question waits.
    var waiter: SlotWaiter?
    /// Whether it is looked again in a while whether calls may go.
    var isTimed = false

    init(_ slot: ClusterSlot) { self.slot = slot }

    /// Whether there is nothing for which the owner would have to be known.
    var hasNothing: Bool { calls.waiting.isEmpty && streams.isEmpty }
    var isEmpty: Bool { calls.isEmpty && streams.isEmpty && paused.isEmpty && !isAsking && !isTimed && crossings == 0 }

    /// Nothing waits for the answer any more.
    func stopAsking() {
        waiter?.leave()
        (isAsking, waiter) = (false, nil)
    }
}
