internal import Bytes
internal import Platform
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// A stream of an actor of another node's, which this node takes from its owner once for all of its clients.
///
/// Each life of it here is a mirror, which clients' connections observe as they observe a stream of this node. When the owner goes, the
/// mirror ends and its clients ask the next owner, each for itself whether it may; the first that may has the stream taken up there
/// behind what the mirror has.
final class SharedStream: Sendable {
    /// After the last one has gone it goes on for so long.
    private static let linger = Duration.seconds(1)
    /// So long what it has is kept for those who ask the next owner.
    private static let longestMove = Duration.seconds(60)

    enum Answer: Sendable {
        case stream(MirroredSource)
        /// It goes on elsewhere, or anew: to be asked for again.
        case elsewhere
        case failed(TrebuchetError)
    }

    private struct Feed {
        let line: SharedLine
        let number: UInt64
        /// Whether it was asked for behind something that was seen.
        let isBehind: Bool
    }

    private struct State {
        /// Where it comes from; nil while it does not.
        var feed: Feed?
        /// Whether all has come that there was when it began.
        var isShown = false
        /// What is here, or was here last.
        var mirror: MirroredSource?
        var waiting: [@Sendable (Answer) -> Void] = []
        /// Those that were given the mirror and have not begun to observe it.
        var admitted = 0
        var isGone = false
        /// Changes whenever it is to be looked again later whether anybody wants it.
        var looks = 0
    }

    let key: SharedStreams.Key
    private weak let streams: SharedStreams?
    private let state = Mutex(State())

    init(_ key: SharedStreams.Key, in streams: SharedStreams) {
        self.key = key
        self.streams = streams
    }

    // MARK: Who wants it

    /// Gives the stream when it is here; soon when it has to come.
    ///
    /// - Parameters:
    ///   - node: that has said that it owns the actor, and that whoever asks may observe.
    ///   - seen: what whoever asks has of it.
    /// - Returns: false when it has just gone: another one is to be made.
    func join(
        at node: ClusterNode, behind seen: (epoch: String, sequence: UInt64),
        _ answer: @escaping @Sendable (Answer) -> Void
    ) -> Bool {
        if let number = feed(notOf: node) {
            for answer in leave(number, isTold: true) ?? [] { answer(.elsewhere) }
        }
        var found: MirroredSource?
        let isThere = state.withLock { state in
            guard !state.isGone else { return false }
            state.looks += 1
            if state.feed != nil, state.isShown, let mirror = state.mirror {
                state.admitted += 1
                found = mirror
                return true
            }
            state.waiting.append(answer)
            if state.feed == nil { begin(at: node, behind: seen, &state) }
            return true
        }
        if let found { answer(.stream(found)) }
        return isThere
    }

    /// What is not to be gone on with: it comes from another node, or is broken.
    private func feed(notOf node: ClusterNode) -> UInt64? {
        state.withLock { state in
            let isBroken = state.isShown && state.mirror?.hasEnded == true
            guard let feed = state.feed, feed.line.node != node || isBroken else {
                if isBroken { state.mirror = nil }
                return nil
            }
            return feed.number
        }
    }

    /// Takes nothing more from a feed. Who observes hears that before anything is left out: an answer may come right behind it.
    ///
    /// - Parameter isTold: whether its owner is told, before anything is asked for again.
    /// - Returns: who waits for it; nil when that was done already.
    private func leave(_ number: UInt64, isTold: Bool) -> [@Sendable (Answer) -> Void]? {
        let (mirror, isBroken) = state.withLock { state in
            state.feed?.number == number
                ? (state.mirror, state.isShown && state.mirror?.hasEnded == true) : (nil, false)
        }
        mirror?.finish(.moved)
        return state.withLock { state in
            guard let feed = state.feed, feed.number == number else { return nil }
            if isTold { feed.line.end(number, mayReturn: false) }
            if isBroken { state.mirror = nil }
            return Self.stop(&state).0
        }
    }

    private func begin(at node: ClusterNode, behind seen: (epoch: String, sequence: UInt64)?, _ state: inout State) {
        guard let streams else { return }
        if state.mirror?.isWhole == false { state.mirror = nil }
        let line = streams.line(to: node)
        let behind = state.mirror.map { ($0.epoch, $0.position) } ?? seen ?? ("", 0)
        let beginning = SharedBeginning(
            actor: key.actor, target: key.target, epoch: behind.0, sequence: behind.1, isFresh: state.mirror == nil)
        let feed = Feed(line: line, number: streams.nextNumber(), isBehind: !behind.0.isEmpty)
        (state.feed, state.isShown) = (feed, false)
        line.begin(self, feed.number, beginning)
    }

    /// One that was given the stream observes it, or does not want it any more.
    func didJoin() {
        let isUnused = state.withLock { state in
            state.admitted -= 1
            return state.admitted == 0 && state.mirror?.broadcasterCount == 0
        }
        if isUnused { lookLater() }
    }

    /// - Returns: those that wait, and what those have who do not.
    private static func stop(_ state: inout State) -> ([@Sendable (Answer) -> Void], MirroredSource?) {
        defer { (state.feed, state.isShown, state.waiting) = (nil, false, []) }
        return (state.waiting, state.mirror)
    }

    private func lookLater() {
        let (look, time) = state.withLock { state in
            state.looks += 1
            return (state.looks, state.feed == nil ? Self.longestMove : Self.linger)
        }
        Task { [weak self] in
            try? await Task.sleep(for: time)
            self?.endIfUnused(look)
        }
    }

    private func endIfUnused(_ look: Int) {
        let isUnused = state.withLock { state in
            guard state.looks == look, !state.isGone, state.admitted == 0, state.waiting.isEmpty,
                state.mirror?.broadcasterCount ?? 0 == 0
            else { return false }
            state.isGone = true
            if let feed = state.feed { feed.line.end(feed.number, mayReturn: state.mirror?.expectsReturns == true) }
            (state.feed, state.mirror) = (nil, nil)
            return true
        }
        if isUnused { streams?.forget(self) }
    }

    // MARK: From the owner

    func receive(_ message: SharedMessage) {
        switch message.kind {
        case .started: didStart(message)
        case .version:
            guard let mirror = mirror(fedBy: message.number) else { return }
            if message.version({ mirror.take($0, $1) }) != true { breakOff(message.number) }
        case .whole:
            guard let mirror = mirror(fedBy: message.number) else { return }
            _ = message.version { mirror.takeWhole($0, $1) }
        case .shown: didShow(message.number)
        case .moved: lose(message.number)
        case .gone: end(message.number, .gone)
        case .failed: fail(message)
        default: break
        }
    }

    private func mirror(fedBy number: UInt64) -> MirroredSource? {
        state.withLock { $0.feed?.number == number ? $0.mirror : nil }
    }

    private func didStart(_ message: SharedMessage) {
        guard let start = message.decoded(SharedStart.self) else { return breakOff(message.number) }
        state.withLock { state in
            guard state.feed?.number == message.number else { return }
            state.mirror = MirroredSource(
                isEvents: start.isEvents, buffer: start.buffer, epoch: start.epoch,
                lives: start.lives.map { StreamLife(epoch: $0.epoch, last: $0.last) }, position: start.position,
                after: start.continues ? state.mirror : nil, memory: streams?.memory
            ) { [weak self] in
                // Not in the isolation in which it is told.
                Task { self?.lookLater() }
            }
        }
    }

    private func didShow(_ number: UInt64) {
        let (mirror, waiting): (MirroredSource?, [@Sendable (Answer) -> Void]) = state.withLock { state in
            guard state.feed?.number == number, let mirror = state.mirror else { return (nil, []) }
            state.isShown = true
            state.admitted += state.waiting.count
            defer { state.waiting = [] }
            return (mirror, state.waiting)
        }
        guard let mirror else { return }
        for answer in waiting { answer(.stream(mirror)) }
    }

    /// Nothing more comes: who observes, or waits, asks again.
    func lose(_ number: UInt64) {
        lose(number, isTold: false)
    }

    private func lose(_ number: UInt64, isTold: Bool) {
        let node = state.withLock { $0.feed?.number == number ? $0.feed?.line.node : nil }
        guard let node else { return }
        streams?.didMove(ClusterSlot(of: key.actor), from: node)
        guard let left = leave(number, isTold: isTold) else { return }
        for answer in left { answer(.elsewhere) }
        lookLater()
    }

    /// Its actor is that node's from now on. What comes from another one may be late, or the last of a node that does not know it yet.
    func leave(for node: ClusterNode) {
        let feed = state.withLock { $0.feed }
        guard let feed, feed.line.node != node else { return }
        lose(feed.number, isTold: true)
    }

    /// What has come fits what is here no more: all begins anew.
    private func breakOff(_ number: UInt64) {
        let mirror: MirroredSource? = state.withLock { state in
            guard let feed = state.feed, feed.number == number else { return nil }
            feed.line.end(number, mayReturn: false)
            defer { state.mirror = nil }
            return state.mirror
        }
        mirror?.finish(.moved)
        lose(number)
    }

    private func end(_ number: UInt64, _ end: MirroredSource.End) {
        let (left, mirror): ([@Sendable (Answer) -> Void], MirroredSource?) = state.withLock { state in
            guard let feed = state.feed, feed.number == number else { return ([], nil) }
            feed.line.forget(number)
            defer { state.mirror = nil }
            return Self.stop(&state)
        }
        mirror?.finish(end)
        for answer in left {
            if case .failed(let error) = end { answer(.failed(error)) } else { answer(.elsewhere) }
        }
        lookLater()
    }

    private func fail(_ message: SharedMessage) {
        let error =
            message.decoded(SharedFailure.self)?.error ?? TrebuchetError(.internal, "the stream's owner has ended it")
        // What is missing between what was seen and what the owner has is for those who have seen it, each by itself.
        let beginsAnew = state.withLock { state in
            guard let feed = state.feed, feed.number == message.number, !state.isShown, feed.isBehind,
                error.code == .overflow
            else { return false }
            feed.line.forget(feed.number)
            state.mirror = nil
            begin(at: feed.line.node, behind: nil, &state)
            return true
        }
        if !beginsAnew { end(message.number, .failed(error)) }
    }
}
