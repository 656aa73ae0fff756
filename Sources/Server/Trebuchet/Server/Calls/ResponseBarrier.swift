internal import Networking
internal import Transports
internal import TrebuchetActors

/// A response that waits for streams. Isolated to its shard's reactor.
final class ResponseBarrier {
    let awaited: BarrierStreams
    /// The size of the response, which counts as buffered memory of its connection.
    let bytes: Int
    fileprivate var timer: LoopTimer?
    fileprivate weak var queue: ResponseBarrierQueue?
    private var done: (() -> Void)?

    init(_ awaited: BarrierStreams, _ bytes: Int, _ done: @escaping () -> Void) {
        (self.awaited, self.bytes, self.done) = (awaited, bytes, done)
    }

    fileprivate var isOver: Bool { done == nil }

    /// Ends the wait and sends the response.
    func sendResponse() { removeCompletion()?() }

    /// Drops the response, whose caller has disconnected.
    func drop() { _ = removeCompletion() }

    private func removeCompletion() -> (() -> Void)? {
        guard let done else { return nil }
        self.done = nil
        timer?.cancel()
        queue?.didEnd()
        return done
    }
}

/// The streams that a response waits for, besides streams that are starting.
enum BarrierStreams {
    case none
    /// Streams that wait for the activation of this actor, or are being resumed at its owner.
    case of(ActorName)
    /// Streams that are being resumed at the owner of this actor, which produced the response.
    case moved(ActorName)

    /// The longest time for which a stream that does not start delays a response. Streams of another server need a round trip to that
    /// server.
    var maximumWait: Duration { if case .none = self { .seconds(1) } else { .seconds(10) } }
}

/// The responses of one reactor that wait for streams of their connections. Isolated to the reactor.
final class ResponseBarriers {
    private let reactor: Reactor
    /// The queues by the numbers of the connections.
    private var queues: [UInt64: ResponseBarrierQueue] = [:]

    init(on reactor: Reactor) { self.reactor = reactor }

    var isEmpty: Bool { queues.isEmpty }
    /// The number of waiting responses.
    var count: Int { queues.values.reduce(0) { $0 + $1.count } }

    func hasResponses(of connection: CallSessionID) -> Bool { queues[connection.number] != nil }

    /// Adds a response of a connection, which is sent after this time at the latest.
    func append(_ barrier: ResponseBarrier, of connection: CallSessionID, for time: Duration) {
        let number = connection.number
        let queue = queues[number] ?? ResponseBarrierQueue { [weak self] in self?.queues[number] = nil }
        queues[number] = queue
        queue.append(barrier)
        barrier.timer = reactor.schedule(after: time) { [weak barrier] in barrier?.sendResponse() }
    }

    /// Removes and returns the responses of a connection that are ready.
    func removeReady(of connection: CallSessionID, where isReady: (ResponseBarrier) -> Bool) -> [ResponseBarrier] {
        queues[connection.number]?.removeReady(where: isReady) ?? []
    }
}

/// The waiting responses of one connection, oldest first. Isolated to its shard's reactor.
private final class ResponseBarrierQueue {
    private var responses: [ResponseBarrier] = []
    private var ended = 0
    private let didEmpty: () -> Void

    /// - Parameter didEmpty: Called when no response waits any more.
    init(didEmpty: @escaping () -> Void) { self.didEmpty = didEmpty }

    var count: Int { responses.count { !$0.isOver } }

    func append(_ barrier: ResponseBarrier) {
        barrier.queue = self
        responses.append(barrier)
    }

    func removeReady(where isReady: (ResponseBarrier) -> Bool) -> [ResponseBarrier] {
        var (ready, others) = ([ResponseBarrier](), [ResponseBarrier]())
        for barrier in responses where !barrier.isOver {
            if isReady(barrier) { ready.append(barrier) } else { others.append(barrier) }
        }
        for barrier in ready { barrier.queue = nil }
        (responses, ended) = (others, 0)
        if others.isEmpty { didEmpty() }
        return ready
    }

    /// Compacts when half of them have ended, so that each is moved once on average.
    func didEnd() {
        ended += 1
        guard ended * 2 > responses.count else { return }
        responses.removeAll(where: \.isOver)
        ended = 0
        if responses.isEmpty { didEmpty() }
    }
}
