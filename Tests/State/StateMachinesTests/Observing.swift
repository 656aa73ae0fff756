import Synchronization

@testable import StateMachines

/// Recorded events, in order.
final class Recorder: Sendable {
    private let contents = Mutex<[String]>([])
    var entries: [String] { contents.withLock { $0 } }
    func record(_ entry: String) { contents.withLock { $0.append(entry) } }
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
