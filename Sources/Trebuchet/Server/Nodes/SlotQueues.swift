internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetCluster

/// Who waits on one reactor to hear which node owns a slot, in the order in which they came.
///
/// `@unchecked Sendable`: on its reactor alone.
final class SlotQueues: @unchecked Sendable {
    typealias Answer = (Result<ClusterNode, TrebuchetError>) -> Void

    /// Before a node is asked again that just said that it does not own what it was asked for, or that is gone.
    private static let pause = Duration.milliseconds(20)

    private let directory: SlotDirectory
    private let reactor: Reactor
    private var waiting: [ClusterSlot: SlotQueue] = [:]

    init(_ directory: SlotDirectory, on reactor: Reactor) {
        self.directory = directory
        self.reactor = reactor
    }

    /// At once where that is known and nobody waits; `unavailable` when nobody has owned it for so long.
    ///
    /// - Returns: the place in which it waits; nil when it was answered.
    func withOwner(of slot: ClusterSlot, waitingUpTo timeout: Duration, _ answer: @escaping Answer) -> SlotWaiter? {
        if let queue = waiting[slot] { return queue.add(answer) }
        if let node = directory.knownOwner(of: slot) {
            answer(.success(node))
            return nil
        }
        let queue = SlotQueue()
        waiting[slot] = queue
        ask(slot, waitingUpTo: timeout)
        return queue.add(answer)
    }

    /// Those that wait, and what those have left behind that do not any more.
    var count: Int { waiting.values.reduce(0) { $0 + $1.waiters.count } }

    /// Who owns it is asked for anew, after a pause; all who want to know wait for that, so that they keep their order.
    func askAgain(_ slot: ClusterSlot, waitingUpTo timeout: Duration) {
        guard waiting[slot] == nil else { return }
        waiting[slot] = SlotQueue()
        reactor.schedule(after: Self.pause) { [weak self] in self?.ask(slot, waitingUpTo: timeout) }
    }

    private func ask(_ slot: ClusterSlot, waitingUpTo timeout: Duration) {
        let (directory, reactor) = (directory, reactor)
        // Held until then: who waits is told.
        let queues = self
        Task {
            let owner: Result<ClusterNode, TrebuchetError>
            do throws(ClusterEngineError) {
                owner = .success(try await directory.owner(of: slot, waitingUpTo: timeout))
            } catch {
                owner = .failure(TrebuchetError(.unavailable, error.textForClients))
            }
            reactor.execute { queues.answer(slot, owner) }
        }
    }

    private func answer(_ slot: ClusterSlot, _ owner: Result<ClusterNode, TrebuchetError>) {
        for waiter in waiting.removeValue(forKey: slot)?.waiters ?? [] { waiter.take()?(owner) }
    }
}

/// Those that wait for one slot. On its reactor.
private final class SlotQueue {
    fileprivate var waiters: [SlotWaiter] = []
    private var left = 0

    func add(_ answer: @escaping SlotQueues.Answer) -> SlotWaiter {
        let waiter = SlotWaiter(self, answer)
        waiters.append(waiter)
        return waiter
    }

    fileprivate func didLeave() {
        left += 1
        // Half of them at a time, so that each is moved once on average.
        guard left * 2 > waiters.count else { return }
        waiters.removeAll { $0.hasLeft }
        left = 0
    }
}

/// One of them.
final class SlotWaiter {
    private weak var queue: SlotQueue?
    private var answer: SlotQueues.Answer?

    fileprivate init(_ queue: SlotQueue, _ answer: @escaping SlotQueues.Answer) {
        self.queue = queue
        self.answer = answer
    }

    fileprivate var hasLeft: Bool { answer == nil }

    fileprivate func take() -> SlotQueues.Answer? {
        defer { answer = nil }
        return answer
    }

    /// It waits no more, and what it held is freed.
    func leave() {
        guard answer != nil else { return }
        answer = nil
        queue?.didLeave()
    }
}
