import Glibc

/// Work that blocks, on a thread of its own: the pool's few threads are not for that.
enum Blocking {
    static func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job { continuation.resume(with: Swift.Result(catching: work)) }
            var thread = pthread_t()
            let status = pthread_create(
                &thread, nil,
                { raw in
                    Unmanaged<Job>.fromOpaque(raw!).takeRetainedValue().run()
                    return nil
                }, Unmanaged.passRetained(job).toOpaque())
            precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
            pthread_detach(thread)
        }
    }

    private final class Job: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
