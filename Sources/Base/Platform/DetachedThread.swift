#if canImport(Darwin)
    internal import Darwin
#else
    internal import CEpoll
    internal import Glibc
#endif

/// Runs blocking work on a new thread, and returns its result or throws its error. The few threads of the concurrency pool must
/// not block.
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

/// Starts a detached thread.
///
/// - Parameter name: the thread name shown by the system, at most 15 bytes; nil leaves the name of the process.
package func startThread(named name: String? = nil, _ work: @escaping @Sendable () -> Void) {
    precondition(name?.utf8.count ?? 0 <= 15, "the name of a thread has 15 bytes at most")
    let job = Job(name, work)
    #if canImport(Darwin)
        var thread: pthread_t?
    #else
        var thread = pthread_t()
    #endif
    let status = pthread_create(
        &thread, nil,
        { raw in
            #if canImport(Darwin)
                let job = Unmanaged<Job>.fromOpaque(raw).takeRetainedValue()
            #else
                let job = Unmanaged<Job>.fromOpaque(raw!).takeRetainedValue()
            #endif
            job.run()
            return nil
        }, Unmanaged.passRetained(job).toOpaque())
    precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
    #if canImport(Darwin)
        pthread_detach(thread!)
    #else
        pthread_detach(thread)
    #endif
}

/// The identifier of the current thread, unique among the threads that run at the same time; never 0.
package var currentThread: UInt {
    #if canImport(Darwin)
        UInt(bitPattern: pthread_self())
    #else
        pthread_self()
    #endif
}

/// The work of a new thread.
private final class Job: Sendable {
    private let name: String?
    private let work: @Sendable () -> Void

    init(_ name: String?, _ work: @escaping @Sendable () -> Void) {
        self.name = name
        self.work = work
    }

    func run() {
        if let name {
            #if canImport(Darwin)
                pthread_setname_np(name)
            #else
                gnu_pthread_setname(pthread_self(), name)
            #endif
        }
        work()
    }
}
