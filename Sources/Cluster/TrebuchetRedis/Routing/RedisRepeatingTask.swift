internal import Networking
internal import Synchronization
internal import Transports

/// Repeats work at an interval after its end, until it is stopped or released.
final class RedisRepeatingTask: Sendable {
    private let reactor: Reactor
    private let interval: Duration
    private let work: @Sendable () async -> Void
    private let isStopped = Atomic<Bool>(false)

    init(
        every interval: Duration, on reactor: Reactor = ReactorGroup.client,
        _ work: @escaping @Sendable () async -> Void
    ) {
        self.reactor = reactor
        self.interval = interval
        self.work = work
        reactor.execute { [weak self] in self?.wait() }
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    private func wait() {
        guard !isStopped.load(ordering: .relaxed) else { return }
        reactor.schedule(after: interval, for: self) { $0.tick() }
    }

    private func tick() {
        guard !isStopped.load(ordering: .relaxed) else { return }
        let (work, reactor) = (work, reactor)
        Task(executorPreference: reactor.taskExecutor) { [weak self] in
            await work()
            reactor.run { [weak self] in self?.wait() }
        }
    }
}
