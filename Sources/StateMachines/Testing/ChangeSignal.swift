import Synchronization

/// Lets a test store sleep until an effect has sent something or has ended.
final class ChangeSignal: Sendable {
    private struct Contents {
        var count: UInt64 = 0
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let contents = Mutex(Contents())

    /// How often something has happened; to be read before looking at what it was.
    var count: UInt64 { contents.withLock { $0.count } }

    func fire() {
        let waiters = contents.withLock { contents in
            contents.count += 1
            defer { contents.waiters = [:] }
            return contents.waiters.values
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Returns once more than `count` things have happened, or at the deadline.
    func wait(after count: UInt64, until deadline: ContinuousClock.Instant) async {
        let alarm = Task {
            guard (try? await Task.sleep(until: deadline)) != nil else { return }
            self.fire()
        }
        defer { alarm.cancel() }
        let number = contents.withLock { contents in
            contents.lastWaiter += 1
            return contents.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = contents.withLock { contents in
                    if contents.count > count || Task.isCancelled { return true }
                    contents.waiters[number] = continuation
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            contents.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}
