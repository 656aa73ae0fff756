internal import Bytes
internal import Synchronization
package import Transports
package import TrebuchetWire

/// What every stream has once, whatever comes out of it: its place in time, those who carry it on, and what is kept for who
/// is behind or comes back. What comes out of a state, of events and of a filter is its subclasses' part, so that a stream is one
/// object with one life.
///
/// Each belongs to one actor's property; a filter's stands on that of the state it looks at, and counts there.
///
/// `@unchecked Sendable`: `broadcasters`, the counts and `memory` may be used from anywhere, what is constant too; all else
/// is touched in the isolation of the stream's actor alone.
package class StreamHub: @unchecked Sendable {
    /// What comes out of a stream.
    package enum Kind: Sendable {
        /// Versions of a value, of which there is always one.
        case state
        /// Events, of which there may be none: who is new begins at a position.
        case events
        /// What a filter lets through of a state, which may be nothing.
        case filter
    }

    typealias Entry = @Sendable (@escaping @Sendable () -> Void) -> Void

    package let kind: Kind
    /// Changes whenever the stream may have been built anew.
    package private(set) final var epoch: String
    /// The lives that it had at other nodes before, as far as it goes on from them.
    private final var earlier: [StreamLife] = []
    /// How many updates are kept for those who are behind, where nothing may be left out; else nil.
    package final let buffer: Int?
    /// The reactor that the stream's actor lives on; nil when it runs on the global pool.
    package let home: SystemShard?
    /// That of the state, of a filter.
    private let origin: StreamHub?
    final let entry: Entry
    private let broadcasters = Mutex<[Broadcaster]>([])
    /// How many these are. Written under their lock, read without.
    private let carriers = Atomic<Int>(0)
    private let subscribers = Atomic<Int>(0)
    /// Broadcasters all of whose subscribers look from inside alone.
    private let lookedAt = Atomic<Int>(0)
    private let encodes = Atomic<Int>(0)
    /// Of a filter that of the state, and not its own to prolong.
    private let memory: StreamMemory
    /// Those who are about to observe events.
    private let expected = StreamPosition.Expected()

    /// Of a stream of another node's: whether its subscribers are to ask for it anew when it has ended. Nil of one whose actor lives here.
    package var goesOnElsewhere: Bool? { nil }

    /// The newest versions; of a filter none.
    final var recent: VersionLog
    /// Where large updates are counted: at the server whose clients observe.
    final var memoryBudget: MemoryBudget?

    /// - Parameters:
    ///   - position: the number of the last version, or event, before those that come.
    ///   - entry: runs work in the actor's isolation, soon. Not used for an actor with a home.
    ///   - origin: the state, of a filter.
    init(
        _ kind: Kind, home: SystemShard?, buffer: Int?, position: UInt64, entry: @escaping Entry,
        origin: StreamHub? = nil
    ) {
        self.kind = kind
        epoch = origin?.epoch ?? StreamEpoch.make()
        self.home = home
        self.buffer = buffer
        self.origin = origin
        memory = origin?.memory ?? StreamMemory()
        recent = VersionLog(keepingEach: origin == nil ? buffer : nil, position: position)
        memoryBudget = home?.memory
        self.entry = entry
    }

    // MARK: What each kind does in its way; in the actor's isolation

    /// Sends what a broadcaster begins with that has just joined: now, or when it may be shown. By itself what is kept, of which the
    /// newest may not be what holds now.
    func first(for broadcaster: Broadcaster) { broadcaster.send(.attached(recent)) }

    /// Sends what a broadcaster lacks that has none of the versions: now, or when it may be shown.
    func whole(for broadcaster: Broadcaster) { first(for: broadcaster) }

    /// The number of the last version, or event, that those who observe may know of.
    var shownPosition: UInt64 { recent.position }

    /// Whether `first(for:)` and `whole(for:)` send at once, and not when a store has what they send.
    var showsAtOnce: Bool { true }

    /// Sends the newest version, if it was not sent yet. Returns what it counts in the turn's budget: nothing where there is none,
    /// as of events, which leave as they are sent.
    @discardableResult
    package func publish() -> Int { 0 }

    /// Sees the stream through a filter, which is the same for all who ask for the same.
    ///
    /// - Parameters:
    ///   - dates: how they are written in what it gives.
    ///   - clock: keeps the time of intervals.
    package func filtered(
        _ filter: StreamFilter, _ dates: DateForm = .milliseconds, clock: any EventLoop,
        terms: FilterTerms = FilterTerms()
    ) throws -> StreamHub {
        throw TrebuchetError(.invalidArguments, "this stream takes no filter")
    }

    /// How many filters look at it.
    package var filterCount: Int { 0 }

    /// Goes on with the life that the stream had in an earlier process. Before anybody observes it.
    ///
    /// - Parameter earlier: the lives before that one.
    final func resume(epoch: String, after earlier: [StreamLife] = []) {
        self.epoch = epoch
        self.earlier = earlier
    }

    /// The lives that it goes on from. In the actor's isolation.
    package final var lives: [StreamLife] { (origin ?? self).earlier }

    /// Whether who has seen the version of this number, in the life of this epoch, goes on from there, and needs nothing anew.
    package final func goesOn(from number: UInt64, in epoch: String) -> Bool {
        if self.epoch.utf8.elementsEqual(epoch.utf8) { return true }
        return (origin ?? self).earlier.contains { $0.epoch.utf8.elementsEqual(epoch.utf8) && number <= $0.last }
    }

    /// Adds a broadcaster, and sends it what it begins with.
    package func attach(_ broadcaster: Broadcaster) {
        memoryBudget = broadcaster.shard.memory
        if join(broadcaster) { first(for: broadcaster) } else { endIfUnused() }
    }

    /// Gives up what it costs where nobody wants it any more. From anywhere.
    package func endIfUnused() {}

    /// The actor is gone; called from whatever thread let go of it last.
    func end() { tell(last: .ended) }

    // MARK: What they share

    /// The identity of the hub that the changes come from.
    package final var root: ObjectIdentifier { ObjectIdentifier(origin ?? self) }
    /// Whether somebody new is to get what holds now, and not what was sent last.
    final var asksForFirst: Bool { kind == .filter }
    /// How many streams carry it over the network now; of a filter, how many carry the state.
    package final var subscriberCount: Int { (origin ?? self).subscribers.load(ordering: .relaxed) }
    final func countSubscriber(_ change: Int) { (origin ?? self).subscribers.add(change, ordering: .relaxed) }
    /// How many versions were encoded so far.
    package final var encodeCount: Int { (origin ?? self).encodes.load(ordering: .relaxed) }

    final func countLookedAtAlone(_ change: Int) { lookedAt.add(change, ordering: .relaxed) }

    /// Whether somebody observes it, or did over the network and may come back. Who looks from inside does not count.
    final var isObserved: Bool {
        subscriberCount > 0 || broadcasterCount > lookedAt.load(ordering: .relaxed) || memory.isKept(on: home)
    }
    /// Whether it goes on as if somebody observed: for who is about to, and, while the server has memory for that, for who lost a
    /// connection.
    final var isKept: Bool { expected.isAny || memory.isKept(on: home) && memoryBudget?.isExhausted != true }

    /// Runs work in the actor's isolation: now, where that is the caller's, or soon.
    final func enter(_ work: @escaping @Sendable () -> Void) {
        // The executor of an actor with a home is its reactor.
        if let home { home.reactor.run(work) } else { entry(work) }
    }

    /// What the actor's values are encoded with.
    final func coder(writing dates: DateForm = .milliseconds) -> ValueCoder {
        home?.coder(writing: dates) ?? ValueCoder(dates: dates)
    }

    /// Tells who listens that there is a new version, where somebody observes it under a name that is known.
    final func tell(_ update: StateUpdate, by causes: VersionCauses, at home: SystemShard) {
        guard let label = current.lazy.compactMap(\.label).first else { return }
        home.events.tell(
            .versionMade(
                ServerEvent.Version(
                    stream: label, number: update.sequence, calls: causes.calls, moreCalls: causes.more,
                    hasOtherCauses: causes.hasOthers,
                    bytes: update.byteCount, isPatch: update.patch != nil,
                    bytesForReaders: subscriberCount > 0 ? 0 : update.current?.count ?? update.byteCount)))
    }

    final func countEncoding() { encodes.add(1, ordering: .relaxed) }

    /// What follows the streamID in a message with a value.
    final func suffix(_ data: borrowing ByteBuffer, sequence: UInt64) -> SharedBytes {
        var message = ByteBuffer(capacity: data.count + 128)
        StreamDataParts.appendSuffix(sequence: sequence, data: data.bytes, into: &message)
        return SharedBytes(message.bytes, countedIn: memoryBudget)
    }

    /// The number of the last event that may be known, for somebody who is about to observe: what comes from now on is kept for a while, and for as long
    /// as the position is. Nil of what has a value to begin with. In the actor's isolation.
    package final func position(keptFor time: Duration) -> StreamPosition? {
        guard kind == .events else { return nil }
        memory.keep(for: time, on: home)
        return StreamPosition(shownPosition, expected)
    }

    /// Whether who has lost a connection may come back.
    package final var expectsReturns: Bool { memory.isKept(on: home) }

    // MARK: Who carries it on

    package final var broadcasterCount: Int { carriers.load(ordering: .relaxed) }
    final var current: [Broadcaster] { broadcasters.withLock { $0 } }
    final func has(_ broadcaster: Broadcaster) -> Bool { current.contains { $0 === broadcaster } }

    /// Whether subscribers on its own reactor wait for a version that others have.
    final var isBeingSent: Bool {
        broadcasters.withLock { $0.contains { $0.shard === home && $0.isUnderWay } }
    }

    /// Adds a broadcaster; false when its last subscriber has gone before this reached the actor's reactor.
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
        if broadcaster.wasLost, origin == nil { memory.keep(for: broadcaster.shard.resumeTime, on: home) }
        endIfUnused()
    }

    final func tell(_ event: StateEvent) { for broadcaster in current { broadcaster.send(event) } }

    /// Says the last thing that there is to say.
    final func tell(last event: StateEvent) {
        let told = broadcasters.withLock { all in
            defer { all = [] }
            carriers.store(0, ordering: .relaxed)
            return all
        }
        for broadcaster in told { broadcaster.send(event) }
    }

    /// Runs a body while nobody carries it on, and nobody can begin to.
    final func whileAlone(_ body: () -> Void) { broadcasters.withLock { if $0.isEmpty { body() } } }
}
