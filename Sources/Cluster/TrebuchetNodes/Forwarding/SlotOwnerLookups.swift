internal import Networking
internal import Platform
internal import Transports
internal import TrebuchetActors
internal import TrebuchetCluster

/// Queues requests on one reactor until the owner of their slot is known, in the order of their arrival.
final class SlotOwnerLookups: Sendable {
    /// Receives the owner or an error.
    typealias Completion = (Result<ClusterNode, TrebuchetError>) -> Void

    /// The pause before another query to a node that has left or does not own the slot.
    private static let pause = Duration.milliseconds(20)

    private let directory: SlotDirectory
    private let reactor: Reactor
    private let waiting: LoopVariable<[ClusterSlot: SlotOwnerLookup]>

    init(_ directory: SlotDirectory, on reactor: Reactor) {
        self.directory = directory
        self.reactor = reactor
        waiting = LoopVariable([:], on: reactor)
    }

    /// Answers with the owner of a slot, immediately if it is known and no request waits; with `unavailable` if the slot has
    /// had no owner for `timeout`.
    ///
    /// - Returns: the queued request; nil if it was answered.
    func withOwner(of slot: ClusterSlot, waitingUpTo timeout: Duration, _ answer: @escaping Completion)
        -> SlotLookupWaiter?
    {
        if let queue = waiting.value[slot] { return queue.addWaiter(answer) }
        if let node = directory.knownOwner(of: slot) {
            answer(.success(node))
            return nil
        }
        let queue = SlotOwnerLookup()
        waiting.value[slot] = queue
        startLookup(slot, waitingUpTo: timeout)
        return queue.addWaiter(answer)
    }

    /// The number of queued requests, including cancelled ones that are not removed yet.
    var count: Int { waiting.value.values.reduce(0) { $0 + $1.waiters.count } }

    /// Queries the owner again after a pause. All requests wait for the result, which keeps their order.
    func retryLookup(of slot: ClusterSlot, waitingUpTo timeout: Duration) {
        guard waiting.value[slot] == nil else { return }
        waiting.value[slot] = SlotOwnerLookup()
        reactor.schedule(after: Self.pause) { [weak self] in self?.startLookup(slot, waitingUpTo: timeout) }
    }

    private func startLookup(_ slot: ClusterSlot, waitingUpTo timeout: Duration) {
        // Retains the queues until the query ends, so that the requests are answered.
        Task {
            let owner: Result<ClusterNode, TrebuchetError>
            do throws(ClusterEngineError) {
                owner = .success(try await directory.owner(of: slot, waitingUpTo: timeout))
            } catch {
                owner = .failure(TrebuchetError(.unavailable, error.textForClients))
            }
            reactor.execute { self.answer(slot, owner) }
        }
    }

    private func answer(_ slot: ClusterSlot, _ owner: Result<ClusterNode, TrebuchetError>) {
        for waiter in waiting.value.removeValue(forKey: slot)?.waiters ?? [] { waiter.removeCompletion()?(owner) }
    }
}

/// The requests that wait for one slot. On its reactor.
private final class SlotOwnerLookup {
    fileprivate var waiters: [SlotLookupWaiter] = []
    private var cancelledCount = 0

    func addWaiter(_ answer: @escaping SlotOwnerLookups.Completion) -> SlotLookupWaiter {
        let waiter = SlotLookupWaiter(self, answer)
        waiters.append(waiter)
        return waiter
    }

    fileprivate func waiterDidCancel() {
        cancelledCount += 1
        // Remove half of the array at a time, so that each element is moved once on average.
        guard cancelledCount * 2 > waiters.count else { return }
        waiters.removeAll { $0.isCancelled }
        cancelledCount = 0
    }
}

/// A queued request.
final class SlotLookupWaiter {
    private weak var queue: SlotOwnerLookup?
    private var completion: SlotOwnerLookups.Completion?

    fileprivate init(_ queue: SlotOwnerLookup, _ answer: @escaping SlotOwnerLookups.Completion) {
        self.queue = queue
        self.completion = answer
    }

    fileprivate var isCancelled: Bool { completion == nil }

    fileprivate func removeCompletion() -> SlotOwnerLookups.Completion? {
        defer { completion = nil }
        return completion
    }

    /// Cancels the request and releases its closure.
    func cancel() {
        guard completion != nil else { return }
        completion = nil
        queue?.waiterDidCancel()
    }
}
