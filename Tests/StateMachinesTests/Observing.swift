import Synchronization
import Testing

@testable import StateMachines

/// Recorded events, in order.
final class Recorder: Sendable {
    private let contents = Mutex<[String]>([])
    var entries: [String] { contents.withLock { $0 } }
    func record(_ entry: String) { contents.withLock { $0.append(entry) } }
}

/// Lets other tasks run until the condition holds; records an issue after two minutes.
func eventually(
    _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
    isolation: isolated (any Actor)? = #isolation, _ condition: () async -> Bool
) async {
    let deadline = ContinuousClock.now + .seconds(120)
    while await !condition() {
        guard ContinuousClock.now < deadline else {
            Issue.record("did not happen in two minutes: \(what)", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}

/// The issues that were reported instead of failing the test.
@MainActor
func issues(_ work: @MainActor () async -> Void) async -> [String] {
    let recorder = Recorder()
    await IssueSink.$current.withValue({ recorder.record($0) }) { await work() }
    return recorder.entries
}

/// Suspends until the task is cancelled.
func untilCancelled() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in stream {}
    continuation.finish()
}

/// Opened once; awaited by any number of tasks, cancelled or not.
final class Latch: Sendable {
    private let isOpen = Mutex(false)
    func open() { isOpen.withLock { $0 = true } }
    func wait() async { while !isOpen.withLock({ $0 }) { await Task.yield() } }
}
