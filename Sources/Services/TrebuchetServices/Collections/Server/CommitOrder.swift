internal import Transports

/// The order of a connection's commits to a collection. A commit that is suspended before its end has the turn; later commits
/// wait for it.
///
/// It is used in its collection's isolation only.
final class CommitOrder {
    /// True while a commit has the turn.
    private(set) var isTaken = false
    private let tasks: TaskSuspender
    private var waiting: [SuspendedTask] = []

    init(_ tasks: TaskSuspender) { self.tasks = tasks }

    /// For tests.
    var waitingCount: Int { waiting.count }

    /// Takes the turn after the commits that wait for it. ``end()`` must follow.
    func waitForTurn(isolation: isolated (any Actor)? = #isolation) async {
        guard isTaken else { return isTaken = true }
        await tasks.suspend { self.waiting.append($0) }
    }

    /// Ends the turn, and gives it to the commit that has waited longest.
    func end() {
        guard waiting.isEmpty else { return waiting.removeFirst().resume() }
        isTaken = false
    }
}
