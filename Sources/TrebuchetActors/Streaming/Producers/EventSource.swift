internal import Bytes
internal import Platform
internal import TrebuchetWire

/// Numbers the events of one `@StreamedEvents` property, encodes each once and hands it to one broadcaster per reactor. They
/// leave as they are sent, or when a store has them.
///
/// `@unchecked Sendable`: what it has of its own is touched in the isolation of the events' actor alone.
final class EventSource: StreamHub, @unchecked Sendable {
    /// Who keeps persisted events, at a server that has a store.
    private(set) var keeper: (any StateKeeper)?
    /// Of the last event that the store was given; nil as long as it has no log that the next one follows.
    var captured: UInt64?
    /// Of the last event that the store has, of those that are persisted: nobody may know of later ones.
    var written: UInt64 = 0
    /// Bytes that one event may have, and all that are kept.
    private var byteLimit = VersionLog.mostBytes
    /// Whether somebody else may give numbers of the same epoch from now on.
    private var isOut = false

    init(buffer: Int, home: SystemShard?, entry: @escaping Entry) {
        super.init(.events, home: home, buffer: buffer, position: 0, entry: entry)
    }

    /// In the actor's isolation.
    func send<Event: Encodable>(_ event: Event) {
        if isOut { beginAnew() }
        let broadcasters = current
        let sequence = recent.position + 1
        guard !broadcasters.isEmpty || isKept || keeper != nil else {
            recent.forget()
            recent.begin(at: sequence)
            return
        }
        do {
            let update = try update(event, sequence)
            recent.append(update)
            didMake(update)
            if let keeper { return keeper.didChange() }
            for broadcaster in broadcasters { broadcaster.send(.update(update)) }
        } catch {
            // Nobody can be told of this event, so nobody may go on as if there were none.
            if let keeper {
                keeper.didRefuse(error)
            } else {
                recent.forget()
                recent.begin(at: sequence)
            }
            for broadcaster in broadcasters { broadcaster.send(.failed(error)) }
        }
    }

    private func update<Event: Encodable>(_ event: Event, _ sequence: UInt64) throws(TrebuchetError) -> StateUpdate {
        countEncoding()
        var data = ByteBuffer()
        do {
            try coder().encode(event, into: &data)
        } catch {
            throw TrebuchetError(
                .internal, "an event of type \(Event.self) cannot be encoded: \(describe(error))")
        }
        if keeper != nil, data.count > byteLimit {
            throw TrebuchetError(
                .internal,
                "an event of type \(Event.self) has \(data.count) bytes, and no more than \(byteLimit) are persisted")
        }
        return Self.update(suffix(data, sequence: sequence), sequence)
    }

    static func update(_ suffix: SharedBytes, _ sequence: UInt64) -> StateUpdate {
        StateUpdate(
            sequence: sequence, current: suffix, patch: nil, wholeByteCount: suffix.count, made: MonotonicClock.now)
    }

    private func didMake(_ update: StateUpdate) {
        guard let home else { return }
        home.counts.count(.versionsMade)
        guard home.events.wants(.versions) else { return }
        var causes = VersionCauses()
        causes.note(ServerEvents.currentCall)
        tell(update, by: causes, at: home)
    }

    // MARK: Events that are kept in a store

    /// What is known of them is what the store has.
    override var shownPosition: UInt64 { keeper == nil ? recent.position : written }

    override func first(for broadcaster: Broadcaster) {
        broadcaster.send(.attached(keeper == nil ? recent : recent.asOf(written)))
    }

    override func attach(_ broadcaster: Broadcaster) {
        super.attach(broadcaster)
        // The epoch that who observes was told is to be the store's too.
        if captured == nil { keeper?.didChange() }
    }

    /// Goes on where the log of an earlier process ends, or with what is here, which the store gets with the next write.
    ///
    /// - Parameters:
    ///   - keeping: how many are kept.
    ///   - byteLimit: bytes of them that are, and that one may have.
    func persist(by keeper: any StateKeeper, keeping: Int, byteLimit: Int) {
        if isOut { beginAnew() }
        self.keeper = keeper
        self.byteLimit = byteLimit
        let earlier = recent
        recent = VersionLog(
            keepingEach: room(keeping: keeping), position: earlier.position, byteLimit: byteLimit)
        for update in earlier.kept { recent.append(update) }
        captured = nil
        // Those who observe already have these.
        written = recent.position
    }

    /// How many are in memory, where so many are kept.
    func room(keeping: Int) -> Int { max(buffer ?? 1, keeping) }

    /// Continues with the events that a store has. Before anybody observes.
    func take(_ stored: VersionLog) { recent = stored }

    /// The store has all that was sent so far.
    func isKept(through number: UInt64) {
        captured = number
        written = number
    }

    /// Nobody keeps them any more. Another actor of the name may go on in the same epoch, so what is sent now is of another.
    func stopKeeping() {
        keeper = nil
        isOut = true
    }

    /// Whether it is in that life, and its last event has that number.
    func isAt(_ number: UInt64, in epoch: String) -> Bool {
        recent.position == number && self.epoch.utf8.elementsEqual(epoch.utf8)
    }

    /// Nobody has taken the place of its actor.
    func goOnKeeping() { isOut = false }

    private func beginAnew() {
        isOut = false
        let text = "the actor was taken out of reach: what it sends from now on is not kept with what it has sent"
        tell(last: .failed(TrebuchetError(.overflow, text)))
        resume(epoch: StreamEpoch.make())
        recent.forget()
    }

    /// Sends what the store has taken.
    func show(_ updates: [StateUpdate], through number: UInt64) {
        written = number
        for broadcaster in current {
            for update in updates { broadcaster.send(.update(update)) }
        }
    }
}
