import Glibc

/// Runs work that blocks on a thread of its own, and gives what it returns.
package func onThread<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
        let job = Job { continuation.resume(returning: work()) }
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { raw in
                Unmanaged<Job>.fromOpaque(raw!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(job).toOpaque())
        precondition(result == 0, "no thread: \(result)")
        pthread_detach(thread)
    }
}

private final class Job: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
