import Synchronization

@testable import TrebuchetServices

/// A clock that advances only when a test advances it.
final class ManualTime: Sendable {
    private struct Sleeper {
        let time: Int
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct Contents {
        var now: Int
        var last = 0
        var sleepers: [Int: Sleeper] = [:]
    }

    private let contents: Mutex<Contents>

    init(_ now: Int) { contents = Mutex(Contents(now: now)) }

    var clock: CollectionClock {
        CollectionClock(now: { [self] in now }, sleep: { [self] in try await self.sleep($0) })
    }

    var now: Int { contents.withLock { $0.now } }
    var sleeperCount: Int { contents.withLock { $0.sleepers.count } }

    /// The time may also decrease; only sleepers whose time has come wake up.
    func move(to time: Int) {
        let due = contents.withLock { contents in
            contents.now = time
            let due = contents.sleepers.filter { $0.value.time <= time }
            for number in due.keys { contents.sleepers[number] = nil }
            return due.values
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    private func sleep(_ duration: Duration) async throws {
        let milliseconds =
            Int(duration.components.seconds) * 1_000
            + Int(duration.components.attoseconds / 1_000_000_000_000_000)
        let number = contents.withLock { contents in
            contents.last += 1
            return contents.last
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = contents.withLock { contents in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    guard milliseconds > 0 else { return .success(()) }
                    contents.sleepers[number] = Sleeper(
                        time: contents.now + milliseconds, continuation: continuation)
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = contents.withLock { $0.sleepers.removeValue(forKey: number) }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
