internal import Deltas
internal import Transports
internal import TrebuchetWire

/// Encodes a state once per version and hands it to one broadcaster per reactor.
///
/// Of a state that knows its changes only these are encoded, and the whole value when somebody needs it.
///
/// `@unchecked Sendable`: `filters` may be used from anywhere; all else is touched in the isolation of the state's actor
/// alone.
final class StateSource: StreamHub, @unchecked Sendable {
    /// That of a state that has not changed.
    static let firstVersion: UInt64 = 1

    let property: any StateProperty
    /// What changed since the last call; nil where that is not known, or helps nobody.
    var takeChanges: ((ValueCoder) -> StateChanges?)?
    let filters = FilterList()
    /// Those in this process, who fetch the value themselves; nil until there is one.
    private var localReaders: (any LocalReaders)?
    private(set) var version: UInt64
    private var published: UInt64 = 0
    /// Whether it was noted that there is something to be published.
    private var isMarked = false
    /// Whether nobody was there for the last version, and nothing is left to be done about that: then a change costs its number, until somebody is.
    private var isIdle = false
    /// Who writes a persisted state, and the last version that it was given. Such a state is sent when it is written.
    var persistence: (any StateKeeper)? { didSet { isIdle = false } }
    var captured: UInt64 = 0
    /// Whether the store has it, or was given it.
    var isInLog = false
    /// The last version that those who observe a persisted state were sent.
    var shown: UInt64 = 0
    /// The form in which it is persisted.
    var storedVersion = 1
    /// The calls that changed it since the last version; none while nobody listens.
    var causes = VersionCauses()
    /// How long the whole value was when it was encoded last.
    var wholeByteCount = 0
    /// When versions are compared with those before them.
    var comparisons = Comparisons()

    init(
        version: UInt64, home: SystemShard?, delivery: StreamDelivery = .latest,
        access: StateAccess<some Codable & Sendable>
    ) {
        let buffer: Int? = if case .every(let buffer) = delivery { StreamDelivery.room(for: buffer) } else { nil }
        self.version = version
        property = ReadProperty(read: access.read)
        // Where each change is a version it is made while the property is being changed: nothing can be taken out of it then.
        takeChanges = buffer == nil ? access.takeChanges : nil
        super.init(.state, home: home, buffer: buffer, position: version, entry: access.enter)
    }

    // MARK: Versions

    func didChange(version: UInt64) {
        self.version = version
        if isIdle, !isWanted {
            localReaders?.didChange(version: version)
            return
        }
        if let home, home.events.wants(.versions) { causes.note(ServerEvents.currentCall) }
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
        guard isWanted else {
            publish()
            return
        }
        // Behind what the actor does now: the end of a call publishes before.
        enter { [weak self] in self?.publishMarked() }
    }

    /// Whether somebody is to be sent what changes now. Who comes later begins with what holds then.
    private var isWanted: Bool { broadcasterCount > 0 || !filters.isEmpty || isKept }

    func publishMarked() { if isMarked { publish() } }

    @discardableResult
    override func publish() -> Int {
        isMarked = false
        guard published < version, persistence == nil else { return 0 }
        let broadcasters = current
        let filters = self.filters.current
        guard !broadcasters.isEmpty || isKept else {
            // A state that knows its changes notes them meanwhile; who comes back gets what it missed.
            if takeChanges == nil { recent.forget() } else { recent.newest = recent.newest?.withoutWhole }
            guard let feed = feeding(filters) else {
                isIdle = filters.isEmpty
                return 0
            }
            published = version
            feed()
            return EagerBytes.leastPerUpdate
        }
        let event = update()
        for broadcaster in broadcasters { broadcaster.send(event) }
        // After the others' update, whose text they use.
        feeding(filters)?()
        guard case .update(let update) = event else { return 0 }
        return max(update.byteCount, EagerBytes.leastPerUpdate)
    }

    /// The current version for all who observe it, or are expected back.
    func update() -> StateEvent {
        published = version
        isIdle = false
        return encode()
    }

    override var showsAtOnce: Bool { persistence?.isAtRest ?? true }

    override func attach(_ broadcaster: Broadcaster) {
        // What has changed is the others' version first.
        publish()
        super.attach(broadcaster)
    }

    override func first(for broadcaster: Broadcaster) {
        let event = first()
        guard let persistence else { return broadcaster.send(event) }
        keepFirstVersion()
        persistence.show(while: { [weak self] in self?.has(broadcaster) == true }) { broadcaster.send(event) }
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

    override func whole(for broadcaster: Broadcaster) {
        publish()
        guard let persistence else { return broadcaster.send(whole()) }
        // Before the value is taken: the changes up to it belong to its version.
        if recent.newest?.sequence != version { _ = update() }
        let event = whole()
        // While versions wait for the store, this value is shown ahead of the changes that lead to it. A broadcaster that took the value alone
        // would drop these changes, so it gets them first.
        let changes = persistence.isAtRest ? nil : recent
        persistence.show(while: { [weak self] in self?.has(broadcaster) == true }) {
            if let changes { broadcaster.send(.attached(changes)) }
            broadcaster.send(event)
        }
    }

    override func end() {
        localReaders?.finish()
        super.end()
        for filter in filters.removeAll() { filter.end() }
    }

    /// What readers in this process follow; made at the first use. In the actor's isolation.
    var readers: any LocalReaders {
        if let localReaders { return localReaders }
        let made = property.readers(version: version, buffer: buffer)
        localReaders = made
        return made
    }

    // MARK: Filters

    override var filterCount: Int { filters.current.count }

    override func filtered(
        _ filter: StreamFilter, _ dates: DateForm = .milliseconds, clock: any EventLoop,
        terms: FilterTerms = FilterTerms()
    ) throws -> FilteredSource {
        if let found = filters.current.first(where: { $0.filter == filter && $0.dates == dates }) { return found }
        let made = FilteredSource(filter, dates, of: self, clock: clock, bringers: terms.bringers)
        if !made.isWhole, let refusal = filters.refusal(on: terms) { throw refusal }
        // At once: others who ask before it is used are to find it.
        filters.add(made, byteLimit: terms.byteLimit)
        return made
    }
}
