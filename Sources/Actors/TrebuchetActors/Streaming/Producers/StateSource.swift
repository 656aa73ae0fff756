internal import Bytes
internal import Deltas
internal import Transports
internal import TrebuchetWire

/// Encodes a state once per version and passes it to one broadcaster per reactor.
///
/// For a state that records its changes, only the changes are encoded, and the whole value when it is needed.
///
/// `@unchecked Sendable`: `filters` may be used on any thread; all else is accessed only in the isolation of the state's actor.
final class StateSource: StreamProducer, @unchecked Sendable {
    /// The version of an unchanged state.
    static let firstVersion: UInt64 = 1

    let property: any StateProperty
    /// Returns the changes since the last call; nil if they are unknown or useless.
    var takeChanges: ((ValueCoder) -> StateChanges?)?
    let filters = FilterList()
    /// The evaluation of large versions for filters; nil until the first one.
    var evaluator: FilterEvaluator?
    /// The size of the versions for filters.
    var filteredByteCount = 0
    /// The readers in this process, which fetch the value themselves; nil until the first one.
    private var localReaders: (any LocalStateReaders)?
    private(set) var version: UInt64
    private var published: UInt64 = 0
    /// Set while a publication is scheduled.
    private var isMarked = false
    /// Set if the last version had no subscriber and needs no further work. A change then only increments the version number.
    private var isIdle = false
    /// The persister of a persisted state. `captured` is the last version that it has received. Versions of such a state are
    /// sent after they are written.
    var persistence: (any StatePersister)? { didSet { isIdle = false } }
    var captured: UInt64 = 0
    /// Set if the state is in the store or was passed to it.
    var isInLog = false
    /// The last version that subscribers of a persisted state were sent.
    var visibleVersion: UInt64 = 0
    /// The schema version of the stored form.
    var storedVersion = 1
    /// The calls that changed the state since the last version; empty without event handlers.
    var causes = VersionCauses()
    /// The size of the whole value when it was last encoded.
    var snapshotByteCount = 0
    /// The backoff for comparisons of versions.
    var comparisons = ComparisonBackoff()

    init(
        version: UInt64, home: SystemShard?, delivery: StreamDelivery = .latest,
        access: StateAccess<some Codable & Sendable>
    ) {
        let buffer: Int? = if case .every(let buffer) = delivery { StreamDelivery.room(for: buffer) } else { nil }
        self.version = version
        property = PropertyReader(read: access.read)
        // In streams without conflation a version is created during the change of the property, when nothing can be taken out
        // of the property.
        takeChanges = buffer == nil ? access.takeChanges : nil
        super.init(.state, home: home, buffer: buffer, position: version, entry: access.enter)
    }

    // MARK: Versions

    func didChange(version: UInt64) {
        self.version = version
        if isIdle, !hasReceivers {
            localReaders?.didChange(version: version)
            return
        }
        if let home, home.events.isEnabled(for: .versions) { causes.recordCall(EventBus.currentCall) }
        localReaders?.didChange(version: version)
        if let persistence {
            // Each change is a version, also within one call.
            if buffer != nil { _ = update() }
            return persistence.didChange()
        }
        if buffer != nil {
            // Each change is a version, also within one call.
            publish()
            return
        }
        guard !isMarked else { return }
        isMarked = true
        if let home { return home.mark(self) }
        guard hasReceivers else {
            publish()
            return
        }
        // Runs after the current work of the actor; the end of a call publishes earlier.
        enter { [weak self] in self?.publishMarked() }
    }

    /// True if changes have a receiver. Later subscribers start with the value of that time.
    private var hasReceivers: Bool { broadcasterCount > 0 || !filters.isEmpty || isRetained }

    func publishMarked() { if isMarked { publish() } }

    @discardableResult
    override func publish() -> Int {
        isMarked = false
        guard published < version, persistence == nil else { return 0 }
        let broadcasters = current
        let filters = self.filters.current
        guard !broadcasters.isEmpty || isRetained else {
            // A state that records its changes continues to do so; a client that resumes receives those it missed.
            if takeChanges == nil { recent.discardVersions() } else { recent.newest = recent.newest?.withoutSnapshot }
            guard let feed = makeFilterUpdate(filters) else {
                isIdle = filters.isEmpty
                return 0
            }
            published = version
            feed()
            return max(filterCost, EncodeBudget.minimumPerUpdate)
        }
        let event = update()
        for broadcaster in broadcasters { broadcaster.send(event) }
        // After the update for other subscribers, whose text the filters reuse.
        makeFilterUpdate(filters)?()
        guard case .update(let update) = event else { return 0 }
        let cost = filters.isEmpty || update.current != nil ? update.byteCount : update.byteCount + filterCost
        return max(cost, EncodeBudget.minimumPerUpdate)
    }

    /// Creates the current version for all subscribers, including those that may resume.
    func update() -> StateEvent {
        published = version
        isIdle = false
        return encode()
    }

    override var sendsImmediately: Bool { persistence?.isPersisted ?? true }

    override func attach(_ broadcaster: Broadcaster) {
        // Pending changes first become a version for the other subscribers.
        publish()
        super.attach(broadcaster)
    }

    override func first(for broadcaster: Broadcaster) {
        let event = first()
        guard let persistence else { return broadcaster.send(event) }
        scheduleFirstVersion()
        persistence.publishAfterWrite(while: { [weak self] in self?.hasSubscription(broadcaster) == true }) {
            broadcaster.send(event)
        }
    }

    private func first() -> StateEvent {
        guard property.isThere else { return .ended }
        if recent.newest?.sequence != version {
            let event = update()
            guard case .update = event else { return event }
        }
        published = version
        return .attached(recent)
    }

    override func sendSnapshot(to broadcaster: Broadcaster) {
        publish()
        guard let persistence else { return broadcaster.send(newestSnapshot()) }
        // Before the value is read, because the changes up to it belong to its version.
        if recent.newest?.sequence != version { _ = update() }
        let event = newestSnapshot()
        // While versions wait for the store, this value is shown before the changes that lead to it. A broadcaster with the
        // value alone would drop these changes, so it receives them first.
        let changes = persistence.isPersisted ? nil : recent
        persistence.publishAfterWrite(while: { [weak self] in self?.hasSubscription(broadcaster) == true }) {
            if let changes { broadcaster.send(.attached(changes)) }
            broadcaster.send(event)
        }
    }

    override func endStream() {
        localReaders?.finish()
        super.endStream()
        for filter in filters.removeAll() { filter.endStream() }
    }

    override func endClientStreams(_ error: TrebuchetError) {
        super.endClientStreams(error)
        for filter in filters.current { filter.endClientStreams(error) }
    }

    /// The source for readers in this process, created on first use. In the actor's isolation.
    var readers: any LocalStateReaders {
        if let localReaders { return localReaders }
        let created = property.readers(version: version, buffer: buffer)
        localReaders = created
        return created
    }

    // MARK: Filters

    override var filterCount: Int { filters.current.count }

    override func filtered(
        _ filter: StreamFilter, clock: any EventLoop, terms: FilterQuota = FilterQuota()
    ) throws -> FilteredSource {
        if let found = filters.current.first(where: { $0.filter == filter }) { return found }
        let created = FilteredSource(filter, of: self, clock: clock, scopes: terms.scopes)
        if !filter.acceptsEverything, let refusal = filters.refusal(on: terms) { throw refusal }
        // Added immediately, so that other subscribers find it before it is used.
        filters.addFilter(created, byteLimit: terms.byteLimit)
        return created
    }
}

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
