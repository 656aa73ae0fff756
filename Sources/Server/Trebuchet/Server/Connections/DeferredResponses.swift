internal import Bytes
internal import Networking
internal import Platform
internal import TrebuchetActors
internal import Transports

/// Responses of one connection that wait, in order, until its streams show the changes of their calls: there are many, or a filter
/// of a large state is evaluated on another thread. Isolated to the connection's reactor.
final class DeferredResponses: Resumable {
    /// The streams that a response waits for.
    struct Streams {
        /// The streams to bring up to date.
        var changed: [StreamSubscription] = []
        /// The versions that are evaluated on another thread.
        var evaluations: [(subscription: StreamSubscription, version: UInt64)] = []

        var isEmpty: Bool { changed.isEmpty && evaluations.isEmpty }
    }

    /// A response, or streams that a later response waits for.
    private struct Entry {
        var streams: Streams
        /// The response; nil until it is known, or if there is none.
        var bytes: [UInt8]?
    }

    /// The number of responses from which the connection is not read.
    private static let maximumCount = 64
    /// The longest time for which an evaluation delays a response.
    private static let maximumWait = Duration.seconds(10)

    private unowned let connection: ServerConnection
    private var entries: [Entry] = []
    private var count = 0
    private var isScheduled = false
    private var isPaused = false
    private var timer: LoopTimer?

    init(_ connection: ServerConnection) { self.connection = connection }

    /// Adds the streams that the next response waits for.
    func addStreams(_ streams: Streams) {
        entries.append(Entry(streams: streams))
        schedule()
    }

    /// Adds a response that follows all streams added so far. Returns false if there is no memory for it.
    func addResponse(_ bytes: [UInt8]) -> Bool {
        guard !entries.isEmpty, (try? connection.account.reserve(bytes.count)) != nil else { return false }
        if entries[entries.count - 1].bytes == nil {
            entries[entries.count - 1].bytes = bytes
        } else {
            entries.append(Entry(streams: Streams(), bytes: bytes))
        }
        count += 1
        if count >= Self.maximumCount, !isPaused {
            isPaused = true
            connection.link.pauseReading()
        }
        return true
    }

    /// Drops all responses, because the connection is closed.
    func drop() {
        for entry in entries { if let bytes = entry.bytes { connection.calls.memory?.release(bytes.count) } }
        entries = []
        finish()
    }

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        connection.shard.reactor.scheduleLongStep(self)
    }

    /// Brings streams up to date and sends responses, for a time slice.
    func resume() {
        isScheduled = false
        guard !entries.isEmpty else { return }
        // A write may end the connection.
        let connection = connection
        defer { withExtendedLifetime(connection) {} }
        let shard = connection.shard
        shard.catchUpSteps += 1
        var slice = TimeSlice(budget: shard.catchUpTime, from: MonotonicClock.now)
        connection.inOneWrite {
            while !entries.isEmpty {
                guard let isServed = serveNext() else { return }
                guard isServed else {
                    sendFirst()
                    continue
                }
                if slice.isCheckDue(), slice.isUsedUp(lastClockReading: &shard.reactor.lastClockReading) {
                    return schedule()
                }
            }
        }
        if entries.isEmpty { finish() }
    }

    /// Serves a stream of the first entry. Returns false if all are up to date, and nil if an evaluation is under way.
    private func serveNext() -> Bool? {
        if let subscription = entries[0].streams.changed.popLast() {
            connection.catchUp(subscription)
            return true
        }
        guard let (subscription, version) = entries[0].streams.evaluations.last else { return false }
        guard subscription.broadcaster.isEvaluated(version) else {
            awaitEvaluation(of: version, by: subscription.broadcaster)
            return nil
        }
        stopTimer()
        entries[0].streams.evaluations.removeLast()
        connection.catchUp(subscription)
        return true
    }

    private func awaitEvaluation(of version: UInt64, by broadcaster: Broadcaster) {
        guard timer == nil else { return }
        broadcaster.whenEvaluated(version) { [weak self] in self?.schedule() }
        timer = connection.shard.reactor.schedule(after: Self.maximumWait) { [weak self] in
            guard let self else { return }
            timer = nil
            if !entries.isEmpty { entries[0].streams.evaluations = [] }
            schedule()
        }
    }

    private func stopTimer() {
        timer?.cancel()
        timer = nil
    }

    private func sendFirst() {
        guard let bytes = entries.removeFirst().bytes else { return }
        count -= 1
        connection.calls.memory?.release(bytes.count)
        connection.link.send { $0.append(bytes) }
    }

    private func finish() {
        stopTimer()
        connection.deferredResponses = nil
        if isPaused, !connection.load.isPaused { connection.link.resumeReading() }
    }
}
