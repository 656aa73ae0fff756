internal import Synchronization
internal import Transports

/// Orders the reports of a transport about one link, and defers them while the client is calling the link. Reports from another
/// thread arrive on the client's event loop later, and the next report on the loop must not overtake them.
final class ReentrancyGuardedInbox: Sendable {
    private let loop: any EventLoop
    /// The number of reports that are not handled yet.
    private let waiting = Atomic<Int>(0)
    /// The nesting depth of calls into the link. Only on the loop.
    private let notificationCount = Atomic<Int>(0)

    init(on loop: any EventLoop) { self.loop = loop }

    /// True if a report can be handled immediately.
    var handlesImmediately: Bool {
        loop.isCurrent && notificationCount.load(ordering: .relaxed) == 0 && waiting.load(ordering: .relaxed) == 0
    }

    /// Handles a report after earlier ones.
    func enqueue(_ report: @escaping @Sendable () -> Void) {
        waiting.add(1, ordering: .relaxed)
        loop.execute {
            report()
            self.waiting.subtract(1, ordering: .relaxed)
        }
    }

    /// Calls the link. Only on the loop.
    func withLink(_ body: () -> Void) {
        notificationCount.add(1, ordering: .relaxed)
        body()
        notificationCount.subtract(1, ordering: .relaxed)
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

    var callSession: String? { link.callSession }
    func send(_ message: [UInt8]) { order.withLink { link.send(message) } }
    func close() { order.withLink { link.close() } }
}
