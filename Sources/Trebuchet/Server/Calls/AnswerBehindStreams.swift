internal import Transports

/// An answer that waits for streams. On its shard's reactor.
final class AnswerBehindStreams {
    let awaited: AwaitedStreams
    var timer: LoopTimer?
    private let done: () -> Void
    private(set) var isOver = false

    init(_ awaited: AwaitedStreams, done: @escaping () -> Void) {
        self.awaited = awaited
        self.done = done
    }

    func end() {
        guard !isOver else { return }
        isOver = true
        timer?.cancel()
        done()
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
