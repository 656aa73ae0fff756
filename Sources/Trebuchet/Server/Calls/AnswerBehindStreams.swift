internal import Transports

/// An answer that waits for streams. On its shard's reactor.
final class AnswerBehindStreams {
    let awaited: AwaitedStreams
    /// Of the answer; they count as held for its connection.
    let bytes: Int
    var timer: LoopTimer?
    fileprivate weak var queue: AnswerQueue?
    private var done: (() -> Void)?

    init(_ awaited: AwaitedStreams, _ bytes: Int, _ done: @escaping () -> Void) {
        (self.awaited, self.bytes, self.done) = (awaited, bytes, done)
    }

    fileprivate var isOver: Bool { done == nil }

    /// It waits no longer.
    func end() { take()?() }

    /// Nobody waits for it any more.
    func drop() { _ = take() }

    private func take() -> (() -> Void)? {
        guard let done else { return nil }
        self.done = nil
        timer?.cancel()
        queue?.didEnd()
        return done
    }
}

/// The answers of one connection that wait, oldest first. On its shard's reactor.
final class AnswerQueue {
    private var answers: [AnswerBehindStreams] = []
    private var ended = 0
    private let didEmpty: () -> Void

    /// - Parameter didEmpty: called when none waits any more.
    init(didEmpty: @escaping () -> Void) { self.didEmpty = didEmpty }

    var waiting: [AnswerBehindStreams] { answers.filter { !$0.isOver } }

    func add(_ answer: AnswerBehindStreams) {
        answer.queue = self
        answers.append(answer)
    }

    /// Takes those out that wait for nothing more.
    func take(where isReady: (AnswerBehindStreams) -> Bool) -> [AnswerBehindStreams] {
        var (ready, others) = ([AnswerBehindStreams](), [AnswerBehindStreams]())
        for answer in answers where !answer.isOver {
            if isReady(answer) { ready.append(answer) } else { others.append(answer) }
        }
        for answer in ready { answer.queue = nil }
        (answers, ended) = (others, 0)
        if others.isEmpty { didEmpty() }
        return ready
    }

    /// Half of them go at a time, so that each is moved once on average.
    fileprivate func didEnd() {
        ended += 1
        guard ended * 2 > answers.count else { return }
        answers.removeAll(where: \.isOver)
        ended = 0
        if answers.isEmpty { didEmpty() }
    }
}

/// For which streams an answer waits, beside those that are just beginning.
enum AwaitedStreams {
    case none
    /// Those too that wait for this actor to be made, or are being taken up at its owner.
    case of(ActorName)
    /// Those too that are being taken up at the owner of this actor, which has made the answer.
    case moved(ActorName)
}
