internal import Synchronization

/// How many connections the clients of a route have opened so far.
package final class ConnectionCount: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var value: Int { count.load(ordering: .acquiring) }

    func add() { count.add(1, ordering: .releasing) }
}
