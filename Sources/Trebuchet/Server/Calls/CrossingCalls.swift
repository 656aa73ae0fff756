internal import Networking
internal import Platform
internal import Synchronization
internal import Transports
internal import TrebuchetActors

/// The calls of one connection to actors of another reactor. Over there they run in their order, for a share of each turn, as if the
/// connection was that reactor's own: however long they take, others wait for a share of them and not for all.
///
/// `@unchecked Sendable`: touched on `reactor` alone, apart from `unread`, which is atomic, and what is said to be the connection's reactor's.
final class CrossingCalls: InLine, @unchecked Sendable {
    /// Nanoseconds of a turn.
    private static let shareOfTurn: UInt64 = 100_000
    /// Bytes of answers that may be on their way to the client; with more the next calls wait.
    static let mostUnread = 1 << 20

    private enum Waiting {
        case call(() -> Void)
        case batch(CrossingBatch)
    }

    let reactor: Reactor
    private var waiting = WorkQueue<Waiting>()
    /// The first of them, when part of it has run.
    private var begun: CrossingBatch?
    private var isInLine = false
    /// Of calls of which nothing is known yet, the first may be long ones.
    private var stride = 1
    private let unread = Atomic<Int>(0)
    /// Of these, what has come to the connection. On the connection's reactor, as all that follows.
    var untaken = 0
    /// The one that calls are still added to.
    var open: CrossingBatch?
    /// Those that have not come back, and `open`.
    var away: [CrossingBatch] = []
    /// Fires when the time of one of them may be over, which is at `watchedUntil`.
    var timer: LoopTimer?
    var watchedUntil = UInt64.max

    init(on reactor: Reactor) { self.reactor = reactor }

    /// Runs `call` after those that came before. From anywhere.
    func add(_ call: @escaping @Sendable () -> Void) {
        reactor.execute {
            self.waiting.append(.call(call))
            self.stand()
        }
    }

    /// The same for calls that come together. On the reactor.
    func add(_ batch: CrossingBatch) {
        waiting.append(.batch(batch))
        stand()
    }

    private var hasWaiting: Bool { begun != nil || !waiting.isEmpty }

    private var room: Int { Self.mostUnread - unread.load(ordering: .relaxed) }

    private func stand() {
        guard !isInLine, hasWaiting, room > 0 else { return }
        isInLine = true
        reactor.standInLine(self)
    }

    func goOn() {
        isInLine = false
        var slice = TimeSlice(budget: Self.shareOfTurn, stride: stride)
        while hasWaiting, room > 0 {
            if let batch = begun ?? nextBatch() {
                begun = batch.run(&slice, room: room) ? nil : batch
                if begun != nil { break }
            }
            if slice.isLookDue(), slice.isUsedUp(lastLook: &reactor.lastLook) { break }
        }
        stride = slice.stride
        stand()
    }

    /// Runs what is a call by itself.
    private func nextBatch() -> CrossingBatch? {
        switch waiting.removeFirst() {
        case .batch(let batch): return batch
        case .call(let call):
            call()
            return nil
        }
    }

    /// An answer is on its way.
    func note(_ bytes: Int) { unread.add(bytes, ordering: .relaxed) }

    /// The client takes what has come. On the connection's reactor.
    func take() {
        guard untaken > 0 else { return }
        let rest = unread.subtract(untaken, ordering: .relaxed).newValue
        if rest < Self.mostUnread, rest + untaken >= Self.mostUnread { reactor.execute { self.stand() } }
        untaken = 0
    }
}
