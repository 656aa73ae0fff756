internal import Bytes
internal import Platform
internal import TrebuchetWire

/// Numbers the events of one `@StreamedEvents` property, encodes each once and passes it to one broadcaster per reactor. Events
/// are sent immediately, or after a store has written them.
///
/// `@unchecked Sendable`: its own properties are accessed only in the isolation of the events' actor.
final class EventSource: StreamProducer, @unchecked Sendable {
    /// The persister of the events, at a server with a store.
    private(set) var persister: (any StatePersister)?
    /// The number of the last event that was passed to the store; nil as long as the store has no log that the next event
    /// continues.
    var captured: UInt64?
    /// The number of the last event that the store has written. Later events must not be visible to subscribers.
    var writtenNumber: UInt64 = 0
    /// The maximum size of one event, and of all retained events, in bytes.
    private var byteLimit = VersionLog.maximumBytes
    /// Set if another instance may assign numbers in the same epoch.
    private var isOut = false

    init(buffer: Int, home: SystemShard?, entry: @escaping Entry) {
        super.init(.events, home: home, buffer: buffer, position: 0, entry: entry)
    }

    /// Sends an event. In the actor's isolation.
    func send<Event: Encodable>(_ event: Event) {
        if isOut { startNewEpoch() }
        let broadcasters = current
        let sequence = recent.position + 1
        guard !broadcasters.isEmpty || isRetained || persister != nil else {
            recent.discardVersions()
            recent.reset(at: sequence)
            return
        }
        do {
            let update = try update(event, sequence)
            recent.append(update)
            didMake(update)
            if let persister { return persister.didChange() }
            for broadcaster in broadcasters { broadcaster.send(.update(update)) }
        } catch {
            // Subscribers cannot receive this event, so their streams must not continue without it.
            if let persister {
                persister.didRefuse(error)
            } else {
                recent.discardVersions()
                recent.reset(at: sequence)
            }
            for broadcaster in broadcasters { broadcaster.send(.failed(error)) }
        }
    }

    private func update<Event: Encodable>(_ event: Event, _ sequence: UInt64) throws(TrebuchetError) -> StateUpdate {
        countEncoding()
        var data = ByteBuffer()
        do {
            try coder.encode(event, into: &data)
        } catch {
            throw TrebuchetError(
                .internal, "an event of type \(Event.self) cannot be encoded: \(describe(error))")
        }
        if persister != nil, data.count > byteLimit {
            throw TrebuchetError(
                .internal,
                "an event of type \(Event.self) has \(data.count) bytes; the limit for persisted events is \(byteLimit)"
            )
        }
        return Self.update(suffix(data, sequence: sequence), sequence)
    }

    static func update(_ suffix: SharedBytes, _ sequence: UInt64) -> StateUpdate {
        StateUpdate(
            sequence: sequence, current: suffix, patch: nil, snapshotByteCount: suffix.count,
            createdAt: MonotonicClock.now)
    }

    private func didMake(_ update: StateUpdate) {
        guard let home else { return }
        home.counts.count(.versionsMade)
        guard home.events.isEnabled(for: .versions) else { return }
        var causes = VersionCauses()
        causes.recordCall(EventBus.currentCall)
        reportVersion(update, by: causes, at: home)
    }

    // MARK: Persistence

    /// Subscribers see only the events that are written.
    override var visiblePosition: UInt64 { persister == nil ? recent.position : writtenNumber }

    override func first(for broadcaster: Broadcaster) {
        broadcaster.send(.attached(persister == nil ? recent : recent.asOf(writtenNumber)))
    }

    override func attach(_ broadcaster: Broadcaster) {
        super.attach(broadcaster)
        // The store must also write the epoch that the subscriber has received.
        if captured == nil { persister?.didChange() }
    }

    /// Starts persistence: continues the log of an earlier process, or writes the events in memory with the next write.
    ///
    /// - Parameters:
    ///   - keeping: the number of events that are retained.
    ///   - byteLimit: the maximum size of all retained events, and of one event.
    func persist(by persister: any StatePersister, keeping: Int, byteLimit: Int) {
        if isOut { startNewEpoch() }
        self.persister = persister
        self.byteLimit = byteLimit
        let earlier = recent
        recent = VersionLog(
            keepingEach: retainedCount(keeping: keeping), position: earlier.position, byteLimit: byteLimit)
        for update in earlier.retainedUpdates { recent.append(update) }
        captured = nil
        // Current subscribers have these events already.
        writtenNumber = recent.position
    }

    /// Returns the number of events in memory when `keeping` events are persisted.
    func retainedCount(keeping: Int) -> Int { max(buffer ?? 1, keeping) }

    /// Continues with the stored events. Called before the first subscription.
    func restoreEvents(_ stored: VersionLog) { recent = stored }

    /// Records that the store has written all events up to `number`.
    func didWrite(through number: UInt64) {
        captured = number
        writtenNumber = number
    }

    /// Ends persistence. Another instance under the name may continue in the same epoch, so later events of this one get a new
    /// epoch.
    func stopPersisting() {
        persister = nil
        isOut = true
    }

    /// Returns whether the stream is in this incarnation and its last event has this number.
    func isAt(_ number: UInt64, in epoch: String) -> Bool {
        recent.position == number && self.epoch.utf8.elementsEqual(epoch.utf8)
    }

    /// Continues in the same epoch, because no other instance has replaced the actor.
    func resumePersisting() { isOut = false }

    private func startNewEpoch() {
        isOut = false
        let text = "the actor was withdrawn: events that it sends from now on are not persisted"
        broadcastEnd(.failed(TrebuchetError(.overflow, text)))
        resume(epoch: StreamEpoch.make())
        recent.discardVersions()
    }

    /// Sends events that the store has written.
    func publishWritten(_ updates: [StateUpdate], through number: UInt64) {
        writtenNumber = number
        for broadcaster in current {
            for update in updates { broadcaster.send(.update(update)) }
        }
    }
}
