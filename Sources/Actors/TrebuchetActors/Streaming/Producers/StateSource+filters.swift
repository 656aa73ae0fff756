internal import Bytes
internal import TrebuchetWire

/// The interface of a state to its filters. In the actor's isolation.
///
/// A small version is encoded and evaluated in one step of the reactor. The time of a large one depends on its size, so another
/// thread does it (`FilterEvaluator`).
extension StateSource {
    /// The size in bytes from which versions are evaluated on another thread: about 1 ms of encoding.
    static var smallestLarge: Int { 32 << 10 }
    /// The size multiplied by the number of filters from which they are.
    private static var smallestProduct: Int { 4 << 20 }

    /// Passes the current version to `body` as soon as it may be shown; nil if the actor was released, an error if the state does
    /// not encode.
    func provideCurrentVersion(
        for filter: FilteredSource, _ body: @escaping (Result<FilterableVersion?, TrebuchetError>) -> Void
    ) {
        let showing: FilterEvaluator.Waiter = { [weak self] current in
            guard let self, let persistence else { return body(current) }
            persistence.publishAfterWrite(while: { [weak filters] in filters?.current.isEmpty == false }) {
                body(current)
            }
        }
        if let evaluator = evaluatorOfLarge, !filter.hasEvaluated(version) {
            if evaluator.awaitVersion(version, filter, showing) { return }
            let job = makeJob(isShown: persistence == nil, filters.current)
            if let job { return evaluator.evaluate(job, showing) }
        }
        showing(Result { try filterable() }.mapError { unencodable($0) })
    }

    /// The share of a version for filters in the turn's budget. A large one is encoded elsewhere.
    var filterCost: Int { filteredByteCount < Self.smallestLarge ? filteredByteCount : 0 }

    /// Returns a closure that passes the current version to filters; nil without filters.
    func makeFilterUpdate(_ filters: [FilteredSource]) -> (() -> Void)? {
        guard !filters.isEmpty else { return nil }
        let list = self.filters
        if evaluatorOfLarge != nil, let job = makeJob(isShown: true, filters) {
            for filter in job.filters { filter.expectEvaluation(of: version) }
            return job.filters.isEmpty ? nil : { [weak self] in self?.evaluator?.evaluate(job) }
        }
        do {
            guard let current = try filterable() else { return nil }
            return { list.feed(current, to: filters) }
        } catch {
            let error = unencodable(error)
            return { for filter in filters { filter.fail(error) } }
        }
    }

    /// Returns the current version, encoded once for all filters; an existing encoding for other subscribers is reused.
    private func filterable() throws -> FilterableVersion? {
        if let current = filters.version(version) { return current }
        guard property.isThere else { return nil }
        guard let text = try newestText ?? suffix() else { return nil }
        let created = FilterableVersion(text, sequence: version, memory: memoryBudget)
        retain(created)
        return created
    }

    private func retain(_ created: FilterableVersion) {
        // Alternating sizes count as large ones.
        filteredByteCount = max(created.text.count, filteredByteCount / 2)
        filters.retainVersion(created)
    }

    private var newestText: SharedBytes? { recent.newest?.sequence == version ? recent.newest?.current : nil }

    // MARK: Large versions

    /// The evaluator, if versions are large; nil for a state without a reactor.
    private var evaluatorOfLarge: FilterEvaluator? {
        let size = max(filteredByteCount, snapshotByteCount)
        guard size >= Self.smallestLarge || size * filters.count >= Self.smallestProduct, let home else { return nil }
        let evaluator = evaluator ?? FilterEvaluator(self, home: home)
        self.evaluator = evaluator
        return evaluator
    }

    /// Returns the evaluation of the current version on another thread for the filters that lack it; nil if it must stay in order,
    /// or if the actor was released.
    private func makeJob(isShown: Bool, _ matching: [FilteredSource]) -> FilterEvaluator.Job? {
        guard let home else { return nil }
        // Without conflation, a stream of whole values has each version.
        if buffer != nil, matching.contains(where: { $0.filter.acceptsEverything }) { return nil }
        let content: FilterEvaluator.Content
        if let text = filters.version(version)?.text ?? newestText {
            content = .text(text)
        } else if let copy = property.copy() {
            countEncoding()
            content = .value(copy)
        } else {
            return nil
        }
        return FilterEvaluator.Job(
            content, sequence: version, isShown: isShown, filters: matching.filter { !$0.hasEvaluated(version) },
            coder: home.makeCoder(), memory: memoryBudget)
    }

    /// Passes an evaluated version to the filters.
    func didEvaluate(_ job: FilterEvaluator.Job, _ outcome: Result<FilterableVersion, TrebuchetError>) {
        switch outcome {
        case .success(let created):
            retain(created)
            guard job.isShown else { return }
            // Later filters request this or a newer version.
            let active = Set(filters.current.lazy.map { ObjectIdentifier($0) })
            filters.pass(created, to: job.filters.filter { active.contains(ObjectIdentifier($0)) })
        case .failure(let error):
            guard job.isShown else { return }
            for filter in job.filters { filter.fail(error) }
        }
        for filter in job.filters { filter.didEvaluate(job.sequence) }
    }
}
