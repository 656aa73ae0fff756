import Synchronization

/// A clock that is stopped until a test advances it.
final class ManualClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Self { Instant(offset: offset + duration) }
        func duration(to other: Self) -> Duration { other.offset - offset }
        static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
    }

    private struct Sleeper {
        let deadline: Instant
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct Contents {
        var now = Instant(offset: .zero)
        var sleepers: [UInt64: Sleeper] = [:]
        var lastSleeper: UInt64 = 0
    }

    private let contents = Mutex(Contents())

    var now: Instant { contents.withLock { $0.now } }
    var minimumResolution: Duration { .nanoseconds(1) }
    var sleeperCount: Int { contents.withLock { $0.sleepers.count } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let number = contents.withLock { contents in
            contents.lastSleeper += 1
            return contents.lastSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = contents.withLock { contents in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if deadline <= contents.now { return .success(()) }
                    contents.sleepers[number] = Sleeper(deadline: deadline, continuation: continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = contents.withLock { $0.sleepers.removeValue(forKey: number) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Advances the clock and wakes the due sleepers.
    func advance(by duration: Duration) {
        let due = contents.withLock { contents in
            contents.now = contents.now.advanced(by: duration)
            let now = contents.now
            let due = contents.sleepers.filter { $0.value.deadline <= now }
            for number in due.keys { contents.sleepers[number] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }
}
