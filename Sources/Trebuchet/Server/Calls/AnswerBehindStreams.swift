internal import Transports

/// An answer that waits for streams. On its shard's reactor.
final class AnswerBehindStreams {
    private let actor: ActorName?
    var timer: LoopTimer?
    private let done: () -> Void
    private(set) var isOver = false

    init(actor: ActorName?, done: @escaping () -> Void) {
        self.actor = actor
        self.done = done
    }

    /// Whether it waits for a stream of one of these actors.
    func isBehind(_ actors: Set<ActorName>) -> Bool { actor.map { actors.contains($0) } ?? false }

    func end() {
        guard !isOver else { return }
        isOver = true
        timer?.cancel()
        done()
    }
}
