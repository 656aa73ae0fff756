internal import Synchronization
internal import Transports

/// Keeps what a transport tells of one link in its order, and has none of it heard while the client is in the midst of telling the link
/// something: what was told off the client's loop gets there later, and what is told next, there, must not overtake it.
///
/// `@unchecked Sendable`: `told` is touched on the loop alone; the rest is constant or atomic.
final class ReportOrder: @unchecked Sendable {
    private let loop: any EventLoop
    /// Reports that were made and are still to be heard.
    private let waiting = Atomic<Int>(0)
    /// How many calls into the link are under way, one inside of the other.
    private var told = 0

    init(on loop: any EventLoop) { self.loop = loop }

    /// Whether a report is heard where it is made.
    var isHeardAtOnce: Bool { loop.isCurrent && told == 0 && waiting.load(ordering: .relaxed) == 0 }

    /// Has a report heard behind those before it.
    func later(_ report: @escaping @Sendable () -> Void) {
        waiting.add(1, ordering: .relaxed)
        loop.execute {
            report()
            self.waiting.subtract(1, ordering: .relaxed)
        }
    }

    /// Tells the link something. On the loop.
    func tell(_ body: () -> Void) {
        told += 1
        body()
        told -= 1
    }
}

/// A link as its client uses it.
final class OrderedLink: ClientLink {
    private let link: any ClientLink
    private let order: ReportOrder

    init(_ link: any ClientLink, _ order: ReportOrder) {
        self.link = link
        self.order = order
    }

    var session: String? { link.session }
    func send(_ message: [UInt8]) { order.tell { link.send(message) } }
    func close() { order.tell { link.close() } }
}
