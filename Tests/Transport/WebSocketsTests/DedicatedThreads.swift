import Dispatch
import Synchronization
import Testing

/// Runs blocking tests on dedicated threads: the pool has one thread for each core, and blocked ones would stop all other tests.
struct DedicatedThreads: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    private static let executors = (0..<8).map { Executor("blocking tests \($0)") }
    private static let next = Atomic(0)

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let number = Self.next.wrappingAdd(1, ordering: .relaxed).oldValue
        try await withTaskExecutorPreference(Self.executors[number % Self.executors.count]) {
            try await function()
        }
    }

    private final class Executor: TaskExecutor {
        private let queue: DispatchQueue

        init(_ label: String) { queue = DispatchQueue(label: label) }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }
}

extension Trait where Self == DedicatedThreads {
    static var dedicatedThreads: DedicatedThreads { DedicatedThreads() }
}
