internal import Networking
internal import Platform
internal import Synchronization

/// The calls of one connection to actors of another reactor. Over there they run in their order, for a share of each turn, as if the
/// connection was that reactor's own: however long they take, others wait for a share of them and not for all.
///
/// `@unchecked Sendable`: touched on `reactor` alone, apart from `unread`, which is atomic, and `untaken`.
final class CrossingCalls: InLine, @unchecked Sendable {
    /// Nanoseconds of a turn.
    private static let shareOfTurn: UInt64 = 100_000
    /// Bytes of answers that may be on their way to the client; with more the next calls wait.
    static let mostUnread = 1 << 20

    let reactor: Reactor
    private var waiting = WorkQueue<() -> Void>()
    private var isInLine = false
    /// Of calls of which nothing is known yet, the first may be long ones.
    private var stride = 1
    private let unread = Atomic<Int>(0)
    /// Of these, what has come to the connection. On the connection's reactor.
    var untaken = 0

    init(on reactor: Reactor) { self.reactor = reactor }

    /// Runs `call` after those that came before. From anywhere.
    func add(_ call: @escaping @Sendable () -> Void) {
        reactor.execute {
            self.waiting.append(call)
            self.stand()
        }
    }

    private func stand() {
        guard !isInLine, !waiting.isEmpty, unread.load(ordering: .relaxed) < Self.mostUnread else { return }
        isInLine = true
        reactor.standInLine(self)
    }

    func goOn() {
        isInLine = false
        var slice = TimeSlice(budget: Self.shareOfTurn, stride: stride)
        while !waiting.isEmpty, unread.load(ordering: .relaxed) < Self.mostUnread {
            waiting.removeFirst()()
            if slice.isLookDue(), slice.isUsedUp(lastLook: &reactor.lastLook) { break }
        }
        stride = slice.stride
        stand()
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
