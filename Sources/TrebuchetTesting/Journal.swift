internal import Synchronization

/// What happened, in order, and a way to wait for it: tests note and wait instead of sleeping.
package final class Journal: Sendable {
    private struct Waiter {
        let condition: @Sendable ([String]) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct Contents {
        var entries: [String] = []
        var waiters: [Int: Waiter] = [:]
        var lastWaiter = 0
    }

    private let contents = Mutex(Contents())

    package init() {}

    package var entries: [String] { contents.withLock { $0.entries } }

    package func note(_ entry: String) {
        let satisfied = contents.withLock { contents in
            contents.entries.append(entry)
            let found = contents.waiters.filter { $0.value.condition(contents.entries) }
            for number in found.keys { contents.waiters[number] = nil }
            return found.values.map(\.continuation)
        }
        for continuation in satisfied { continuation.resume() }
    }

    /// Returns when the entry has been noted, or the task is cancelled.
    package func wait(for entry: String) async { await wait { $0.contains(entry) } }

    /// Returns when the condition holds for the entries, or the task is cancelled.
    package func wait(until condition: @escaping @Sendable ([String]) -> Bool) async {
        let number = contents.withLock { contents in
            contents.lastWaiter += 1
            return contents.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = contents.withLock { contents in
                    if Task.isCancelled || condition(contents.entries) { return true }
                    contents.waiters[number] = Waiter(condition: condition, continuation: continuation)
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            let waiter = contents.withLock { $0.waiters.removeValue(forKey: number) }
            waiter?.continuation.resume()
        }
    }
}
