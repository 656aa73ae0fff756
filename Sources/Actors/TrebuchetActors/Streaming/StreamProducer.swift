internal import Bytes
internal import Synchronization
package import Transports
package import TrebuchetWire

/// The part that every stream has once, regardless of its kind: epoch, broadcasters, and the updates retained for slow and
/// resuming subscribers. Subclasses implement states, events and filters, so that a stream is one object with one lifetime.
///
/// Each belongs to one actor's property. A filter uses the producer of its state and is counted there.
///
/// `@unchecked Sendable`: `broadcasters`, the counts, `memory` and constants may be used on any thread; all else is accessed
/// only in the isolation of the stream's actor.
package class StreamProducer: @unchecked Sendable {
    /// The content of a stream.
    package enum Kind: Sendable {
        /// Versions of a value, of which there is always one.
        case state
        /// Events, of which there may be none: a new subscriber starts at a position.
        case events
        /// The versions of a state that a filter accepts; there may be none.
        case filter
    }

    typealias Entry = @Sendable (@escaping @Sendable () -> Void) -> Void

    package let kind: Kind
    /// The epoch; changes whenever the stream may have been recreated.
    package private(set) final var epoch: String
    /// The earlier incarnations of the stream at other nodes that it continues.
    private final var earlier: [StreamIncarnation] = []
    /// The number of updates that are retained in a stream without conflation; nil for other streams.
    package final let buffer: Int?
    /// The shard of the reactor that the stream's actor lives on; nil if it runs on the global pool.
    package let home: SystemShard?
    /// The producer of the state, for a filter.
    private let origin: StreamProducer?
    final let entry: Entry
    private let broadcasters = Mutex<[Broadcaster]>([])
    /// The number of broadcasters. Written under their lock, read without it.
    private let carriers = Atomic<Int>(0)
    private let subscribers = Atomic<Int>(0)
    /// The number of broadcasters with only inspector subscribers.
    private let inspectorOnlyBroadcasters = Atomic<Int>(0)
    private let encodes = Atomic<Int>(0)
    /// The resume retention. A filter shares that of its state and does not extend it.
    private let memory: ResumeRetention
    /// The reserved positions of clients that are about to observe events.
    private let expected = StreamPosition.Expected()

    /// True if subscribers have to request an ended stream of another node again. Nil for a stream of a local actor.
    package var requiresNewRequest: Bool? { nil }

    /// The newest versions; empty for a filter.
    final var recent: VersionLog
    /// The budget in which large updates are counted: the one of the subscribers' server.
    final var memoryBudget: MemoryBudget?

    /// Creates a producer.
    ///
    /// - Parameters:
    ///   - position: the number of the last version or event before the first that is produced.
    ///   - entry: runs work in the actor's isolation, soon. Not used for an actor with a home reactor.
    ///   - origin: the producer of the state, for a filter.
    init(
        _ kind: Kind, home: SystemShard?, buffer: Int?, position: UInt64, entry: @escaping Entry,
        origin: StreamProducer? = nil
    ) {
        self.kind = kind
        epoch = origin?.epoch ?? StreamEpoch.make()
        self.home = home
        self.buffer = buffer
        self.origin = origin
        memory = origin?.memory ?? ResumeRetention()
        recent = VersionLog(keepingEach: origin == nil ? buffer : nil, position: position)
        memoryBudget = home?.memory
        self.entry = entry
    }

    // MARK: Overridden by each kind; in the actor's isolation

    /// Sends the first event to a broadcaster that has just joined: immediately, or when it may be shown. The default is the
    /// retained log, whose newest version may not be the current one.
    func first(for broadcaster: Broadcaster) { broadcaster.send(.attached(recent)) }

    /// Sends the whole value to a broadcaster without usable versions: immediately, or when it may be shown.
    func sendSnapshot(to broadcaster: Broadcaster) { first(for: broadcaster) }

    /// The number of the last version or event that subscribers may know.
    var visiblePosition: UInt64 { recent.position }

    /// True if `first(for:)` and `sendSnapshot(to:)` send immediately, instead of after a store write.
    var sendsImmediately: Bool { true }

    /// Publishes the newest version, if it was not published yet. Returns its share of the turn's budget: 0 if there is none,
    /// or for events, which are sent immediately.
    @discardableResult
    package func publish() -> Int { 0 }

    /// Returns the stream through a filter; equal filters share one object.
    ///
    /// - Parameters:
    ///   - clock: the loop with the timers for intervals.
    package func filtered(
        _ filter: StreamFilter, clock: any EventLoop, terms: FilterQuota = FilterQuota()
    ) throws -> StreamProducer {
        throw TrebuchetError(
            .invalidArguments, "\(kind == .events ? "events do" : "this stream does") not support filters")
    }

    /// The number of filters of the stream.
    package var filterCount: Int { 0 }

    /// Continues the stream incarnation of an earlier process. Called before the first subscription.
    ///
    /// - Parameter earlier: the incarnations before that one.
    final func resume(epoch: String, after earlier: [StreamIncarnation] = []) {
        self.epoch = epoch
        self.earlier = earlier
    }

    /// The incarnations that the stream continues. In the actor's isolation.
    package final var incarnations: [StreamIncarnation] { (origin ?? self).earlier }

    /// Returns whether a subscriber with this version of this epoch can continue from there.
    package final func canResume(from number: UInt64, in epoch: String) -> Bool {
        if self.epoch.utf8.elementsEqual(epoch.utf8) { return true }
        return (origin ?? self).earlier.contains { $0.epoch.utf8.elementsEqual(epoch.utf8) && number <= $0.lastVersion }
    }

    /// Adds a broadcaster and sends it the first event.
    package func attach(_ broadcaster: Broadcaster) {
        memoryBudget = broadcaster.shard.memory
        if join(broadcaster) { first(for: broadcaster) } else { endIfUnused() }
    }

    /// Releases resources if there are no subscribers. Called on any thread.
    package func endIfUnused() {}

    /// Ends the stream after the actor was released. Called on the thread that released the actor last.
    func endStream() { broadcastEnd(.ended) }

    /// Ends the streams of clients with an error. In the actor's isolation.
    func endClientStreams(_ error: TrebuchetError) {
        publish()
        broadcast(.clientsDismissed(error))
    }

    // MARK: Shared by all kinds

    /// The identity of the producer in which the changes originate.
    package final var root: ObjectIdentifier { ObjectIdentifier(origin ?? self) }
    /// True if a new subscriber receives the current value instead of the last sent one.
    final var requestsCurrentValue: Bool { kind == .filter }
    /// The number of current network subscribers; for a filter, those of the state.
    package final var subscriberCount: Int { (origin ?? self).subscribers.load(ordering: .relaxed) }
    final func countSubscriber(_ change: Int) { (origin ?? self).subscribers.add(change, ordering: .relaxed) }
    /// The number of versions encoded so far.
    package final var encodeCount: Int { (origin ?? self).encodes.load(ordering: .relaxed) }

    final func addInspectorOnlyBroadcasters(_ change: Int) { inspectorOnlyBroadcasters.add(change, ordering: .relaxed) }

    /// True if the stream has a subscriber, or had a network subscriber that may resume. Inspectors do not count.
    final var isObserved: Bool {
        subscriberCount > 0 || broadcasterCount > inspectorOnlyBroadcasters.load(ordering: .relaxed)
            || memory.isRetained(on: home)
    }
    /// True if the stream runs as if it had a subscriber. It does for a client that is about to subscribe and, while the server
    /// has memory, for one that has lost its connection.
    final var isRetained: Bool { expected.isAny || memory.isRetained(on: home) && memoryBudget?.isExhausted != true }

    /// Runs work in the actor's isolation: immediately, if the caller is in it, or soon.
    final func enter(_ work: @escaping @Sendable () -> Void) {
        // The executor of an actor with a home is its reactor.
        if let home { home.reactor.run(work) } else { entry(work) }
    }

    /// Returns the coder for the actor's values.
    final var coder: ValueCoder { home?.coder ?? ValueCoder() }

    /// Reports a new version to the event handlers, if a subscriber has given the stream's names.
    final func reportVersion(_ update: StateUpdate, by causes: VersionCauses, at home: SystemShard) {
        guard let label = current.lazy.compactMap(\.label).first else { return }
        home.events.emit(
            .versionCreated(
                ServerEvent.Version(
                    stream: label, number: update.sequence, calls: causes.calls, unnamedCallCount: causes.more,
                    hasOtherCauses: causes.hasOthers,
                    bytes: update.byteCount, isPatch: update.patch != nil,
                    bytesForReaders: subscriberCount > 0 ? 0 : update.current?.count ?? update.byteCount)))
    }

    final func countEncoding() { encodes.add(1, ordering: .relaxed) }

    /// Returns the part after the streamID of a message with a value.
    final func suffix(_ data: borrowing ByteBuffer, sequence: UInt64) -> SharedBytes {
        var message = ByteBuffer(capacity: data.count + 128)
        StreamDataEncoding.appendSuffix(sequence: sequence, data: data.bytes, into: &message)
        return SharedBytes(message.bytes, countedIn: memoryBudget)
    }

    /// Returns the number of the last visible event for a client that is about to observe. Later events are retained for
    /// `time`, and as long as the returned position exists. Nil for streams with an initial value. In the actor's isolation.
    package final func position(retainedFor time: Duration) -> StreamPosition? {
        guard kind == .events else { return nil }
        memory.extend(for: time, on: home)
        return StreamPosition(visiblePosition, expected)
    }

    /// True if a subscriber that has lost its connection may resume.
    package final var expectsReturns: Bool { memory.isRetained(on: home) }

    // MARK: Broadcasters

    package final var broadcasterCount: Int { carriers.load(ordering: .relaxed) }
    final var current: [Broadcaster] { broadcasters.withLock { $0 } }
    final func hasSubscription(_ broadcaster: Broadcaster) -> Bool { current.contains { $0 === broadcaster } }

    /// True if subscribers on the home reactor wait for a version that others have received.
    final var isBeingSent: Bool {
        broadcasters.withLock { $0.contains { $0.shard === home && $0.isUnderWay } }
    }

    /// Adds a broadcaster. Returns false if its last subscriber has left before the request reached the actor's reactor.
    private func join(_ broadcaster: Broadcaster) -> Bool {
        broadcasters.withLock { all in
            guard !broadcaster.isDetached else { return false }
            if !all.contains(where: { $0 === broadcaster }) { all.append(broadcaster) }
            carriers.store(all.count, ordering: .relaxed)
            return true
        }
    }

    final func detach(_ broadcaster: Broadcaster) {
        broadcasters.withLock { all in
            broadcaster.isDetached = true
            all.removeAll { $0 === broadcaster }
            carriers.store(all.count, ordering: .relaxed)
        }
        if broadcaster.wasLost, origin == nil { memory.extend(for: broadcaster.shard.resumeTime, on: home) }
        endIfUnused()
    }

    final func broadcast(_ event: StateEvent) { for broadcaster in current { broadcaster.send(event) } }

    /// Sends the last event to all broadcasters and removes them.
    final func broadcastEnd(_ event: StateEvent) {
        let notified = broadcasters.withLock { all in
            defer { all = [] }
            carriers.store(0, ordering: .relaxed)
            return all
        }
        for broadcaster in notified { broadcaster.send(event) }
    }

    /// Runs a body while there are no broadcasters and none can join.
    final func whileUnused(_ body: () -> Void) { broadcasters.withLock { if $0.isEmpty { body() } } }
}
