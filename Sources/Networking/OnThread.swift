internal import Glibc

/// Runs work that blocks on a thread of its own, and gives what it returns or throws: the pool's few threads are not for that.
package func onThread<Value: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    let outcome: Result<Value, Failure> = await withCheckedContinuation { continuation in
        startThread {
            do throws(Failure) {
                continuation.resume(returning: .success(try work()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try outcome.get()
}

/// Starts a thread that nobody waits for.
package func startThread(_ work: @escaping @Sendable () -> Void) {
    let job = Job(work)
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

private final class Job: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}
