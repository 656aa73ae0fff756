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
    private var waiting: [ClusterSlot: [Answer]] = [:]

    init(_ directory: SlotDirectory, on reactor: Reactor) {
        self.directory = directory
        self.reactor = reactor
    }

    /// At once where that is known and nobody waits; `unavailable` when nobody has owned it for so long.
    func withOwner(of slot: ClusterSlot, waitingUpTo timeout: Duration, _ answer: @escaping Answer) {
        if waiting[slot] != nil {
            waiting[slot]?.append(answer)
            return
        }
        if let node = directory.knownOwner(of: slot) { return answer(.success(node)) }
        waiting[slot] = [answer]
        ask(slot, waitingUpTo: timeout)
    }

    /// Who owns it is asked for anew, after a pause; all who want to know wait for that, so that they keep their order.
    func askAgain(_ slot: ClusterSlot, waitingUpTo timeout: Duration) {
        guard waiting[slot] == nil else { return }
        waiting[slot] = []
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
        for answer in waiting.removeValue(forKey: slot) ?? [] { answer(owner) }
    }
}
