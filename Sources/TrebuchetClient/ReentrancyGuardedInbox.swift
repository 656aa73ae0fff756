internal import Synchronization
internal import Transports

/// Orders the reports of a transport about one link, and defers them while the client is calling the link. Reports from another
/// thread arrive on the client's event loop later, and the next report on the loop must not overtake them.
///
/// `@unchecked Sendable`: `told` is accessed only on the loop; the rest is constant or atomic.
final class ReentrancyGuardedInbox: @unchecked Sendable {
    private let loop: any EventLoop
    /// The number of reports that are not handled yet.
    private let waiting = Atomic<Int>(0)
    /// The nesting depth of calls into the link.
    private var told = 0

    init(on loop: any EventLoop) { self.loop = loop }

    /// True if a report can be handled immediately.
    var isHeardAtOnce: Bool { loop.isCurrent && told == 0 && waiting.load(ordering: .relaxed) == 0 }

    /// Handles a report after earlier ones.
    func later(_ report: @escaping @Sendable () -> Void) {
        waiting.add(1, ordering: .relaxed)
        loop.execute {
            report()
            self.waiting.subtract(1, ordering: .relaxed)
        }
    }

    /// Calls the link. Only on the loop.
    func tell(_ body: () -> Void) {
        told += 1
        body()
        told -= 1
    }
}

/// A link that defers the reports made during its methods.
final class ReentrancyGuardedLink: ClientLink {
    private let link: any ClientLink
    private let order: ReentrancyGuardedInbox

    init(_ link: any ClientLink, _ order: ReentrancyGuardedInbox) {
        self.link = link
        self.order = order
    }

    var session: String? { link.session }
    func send(_ message: [UInt8]) { order.tell { link.send(message) } }
    func close() { order.tell { link.close() } }
}
