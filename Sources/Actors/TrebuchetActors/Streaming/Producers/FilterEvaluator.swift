internal import Bytes
internal import Deltas
internal import Platform
internal import TrebuchetWire

/// The evaluation of the versions of one large state for its filters, on another thread than the reactor of its actor.
///
/// One evaluation runs at a time, so a state uses at most one thread. A version that waits is replaced by a newer one, because
/// filters conflate. Accessed only in the isolation of the state's actor, which is its reactor.
final class FilterEvaluator {
    /// The text of a version, or the value to encode.
    enum Content: Sendable {
        case text(SharedBytes)
        case value(StateCopy)
    }

    /// The evaluation of one version. The coder has no other user.
    final class Job: Sendable {
        let sequence: UInt64
        /// True if the version may be shown, so that all filters receive it. Otherwise it is for subscribers that wait for a write.
        let isShown: Bool
        let filters: [FilteredSource]
        private let content: Content
        private let coder: ValueCoder
        private let memory: MemoryBudget?

        init(
            _ content: Content, sequence: UInt64, isShown: Bool, filters: [FilteredSource], coder: ValueCoder,
            memory: MemoryBudget?
        ) {
            (self.content, self.sequence, self.isShown) = (content, sequence, isShown)
            (self.filters, self.coder, self.memory) = (filters, coder, memory)
        }

        /// Encodes the version and locates, compares and hashes all parts that the filters read.
        fileprivate func evaluate() -> Result<FilterableVersion, any Error> {
            Result {
                let version = FilterableVersion(try text(), sequence: sequence, memory: memory)
                version.find(PointerSet(filters.lazy.flatMap { FilterEvaluation.pointers(of: $0.filter) }))
                for filter in filters { filter.prepare(version) }
                return version
            }
        }

        private func text() throws -> SharedBytes {
            switch content {
            case .text(let text): return text
            case .value(let copy):
                let data = try copy(coder)
                var message = ByteBuffer(capacity: data.count + 128)
                data.withUnsafeBytes {
                    StreamDataEncoding.appendSuffix(sequence: sequence, data: $0, into: &message)
                }
                return SharedBytes(message.bytes, countedIn: memory)
            }
        }
    }

    /// A subscriber that waits for a version.
    typealias Waiter = (Result<FilterableVersion?, TrebuchetError>) -> Void

    private unowned let source: StateSource
    private let home: SystemShard
    private var running: Job?
    private var queued: [Job] = []
    private var waiters: [(sequence: UInt64, body: Waiter)] = []
    /// The number of evaluations so far.
    private(set) var count = 0

    init(_ source: StateSource, home: SystemShard) {
        self.source = source
        self.home = home
    }

    /// Queues a version, which replaces an older one that waits.
    func evaluate(_ job: Job) {
        queued.removeAll { $0.isShown == job.isShown }
        queued.append(job)
        startNext()
    }

    /// Calls `body` after the evaluation of a version or a newer one. Returns false if none is queued that includes `filter`.
    func awaitVersion(_ sequence: UInt64, _ filter: FilteredSource, _ body: @escaping Waiter) -> Bool {
        let isQueued = (queued + [running].compactMap { $0 }).contains { job in
            job.sequence >= sequence && job.filters.contains { $0 === filter }
        }
        if isQueued { waiters.append((sequence, body)) }
        return isQueued
    }

    /// Queues a version and calls `body` after its evaluation.
    func evaluate(_ job: Job, _ body: @escaping Waiter) {
        waiters.append((job.sequence, body))
        evaluate(job)
    }

    private func startNext() {
        guard running == nil, !queued.isEmpty else { return }
        let job = queued.removeFirst()
        running = job
        count += 1
        BlockingThreads.compute { [weak source, reactor = home.reactor] in
            let outcome = job.evaluate()
            reactor.execute { [weak source] in source?.evaluator?.finish(job, outcome) }
        }
    }

    private func finish(_ job: Job, _ outcome: Result<FilterableVersion, any Error>) {
        running = nil
        let outcome = outcome.mapError(source.unencodable)
        source.didEvaluate(job, outcome)
        let ready = waiters.filter { $0.sequence <= job.sequence }
        waiters.removeAll { $0.sequence <= job.sequence }
        for waiter in ready { waiter.body(outcome.map { $0 }) }
        startNext()
    }
}
