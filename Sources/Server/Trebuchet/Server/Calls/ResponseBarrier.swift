internal import Transports

/// A response that waits for streams. Isolated to its shard's reactor.
final class ResponseBarrier {
    let awaited: BarrierStreams
    /// The size of the response, which counts as buffered memory of its connection.
    let bytes: Int
    var timer: LoopTimer?
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

/// The waiting responses of one connection, oldest first. Isolated to its shard's reactor.
final class ResponseBarrierQueue {
    private var responses: [ResponseBarrier] = []
    private var ended = 0
    private let didEmpty: () -> Void

    /// - Parameter didEmpty: Called when no response waits any more.
    init(didEmpty: @escaping () -> Void) { self.didEmpty = didEmpty }

    var waiting: [ResponseBarrier] { responses.filter { !$0.isOver } }

    func append(_ answer: ResponseBarrier) {
        answer.queue = self
        responses.append(answer)
    }

    /// Removes and returns the responses that are ready.
    func removeReady(where isReady: (ResponseBarrier) -> Bool) -> [ResponseBarrier] {
        var (ready, others) = ([ResponseBarrier](), [ResponseBarrier]())
        for answer in responses where !answer.isOver {
            if isReady(answer) { ready.append(answer) } else { others.append(answer) }
        }
        for answer in ready { answer.queue = nil }
        (responses, ended) = (others, 0)
        if others.isEmpty { didEmpty() }
        return ready
    }

    /// Compacts when half of them have ended, so that each is moved once on average.
    fileprivate func didEnd() {
        ended += 1
        guard ended * 2 > responses.count else { return }
        responses.removeAll(where: \.isOver)
        ended = 0
        if responses.isEmpty { didEmpty() }
    }
}

/// The streams that a response waits for, besides streams that are starting.
enum BarrierStreams {
    case none
    /// Streams that wait for the activation of this actor, or are being resumed at its owner.
    case of(ActorName)
    /// Streams that are being resumed at the owner of this actor, which produced the response.
    case moved(ActorName)
}
