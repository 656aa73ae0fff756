import Synchronization

/// A counter for tasks, with recorded notes.
final class TaskCounter: Sendable {
    private struct Contents {
        var count = 0
        var most = 0
        var notes: [Int] = []
    }

    private let contents = Mutex(Contents())

    var count: Int { contents.withLock { $0.count } }
    var most: Int { contents.withLock { $0.most } }
    var notes: [Int] { contents.withLock { $0.notes } }

    func enter() {
        contents.withLock {
            $0.count += 1
            $0.most = max($0.most, $0.count)
        }
    }

    func leave() { contents.withLock { $0.count -= 1 } }

    func note(_ number: Int) { contents.withLock { $0.notes.append(number) } }
}
