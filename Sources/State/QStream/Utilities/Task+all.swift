/// Some of several concurrent operations failed.
public enum AllTaskError: Error {
    /// The errors of the failed operations, in the order of failure.
    case someFailed([any Error])
}

/// All of several concurrent operations failed.
public enum AnyTaskError: Error {
    /// The errors, in the order of failure.
    case noneSucceeded([any Error])
}

extension Task where Success == Never, Failure == Never {
    /// Returns the results of all tasks, when all are done. Then the first error, in the order of the tasks, is
    /// thrown.
    public static func all<each Result: Sendable, each Problem: Error>(
        of task: repeat Task<each Result, each Problem>
    ) async throws -> (repeat each Result) {
        try await (repeat (each task).value)
    }

    /// Runs all operations concurrently and returns the results in the order of the closures.
    ///
    /// When some fail, it still waits for the others, and then throws ``AllTaskError/someFailed(_:)``.
    public static func all<Result: Sendable>(
        of work: [@concurrent @Sendable () async throws -> Result]
    ) async throws -> [Result] {
        let results = await work.mapConcurrent(orderBy: .completion) { work in
            await Swift.Result(catching: { try await work() })
        }
        let errors = results.compactMap { result in
            if case .failure(let error) = result { error as (any Error)? } else { nil }
        }
        guard errors.isEmpty else { throw AllTaskError.someFailed(errors) }
        return try results.map { try $0.get() }
    }

    /// Runs all operations concurrently and returns the first result. The rest is cancelled.
    ///
    /// Throws ``AnyTaskError/noneSucceeded(_:)`` when all fail.
    ///
    /// - Parameter failImmediately: true to throw the first error instead, as soon as there is one.
    public static func any<Result: Sendable>(
        of work: [@concurrent @Sendable () async throws -> Result], failImmediately: Bool = false
    ) async throws -> Result {
        try await withThrowingTaskGroup(of: Result.self) { group in
            defer { group.cancelAll() }
            for work in work { group.addTask(operation: work) }
            var errors: [any Error] = []
            while let result = await group.nextResult() {
                switch result {
                case .success(let result): return result
                case .failure(let error):
                    if failImmediately { throw error }
                    errors.append(error)
                }
            }
            throw AnyTaskError.noneSucceeded(errors)
        }
    }

    /// Runs all operations concurrently and returns the first result. The rest is cancelled.
    public static func any<Result: Sendable>(
        of work: (@concurrent @Sendable () async throws -> Result)..., failImmediately: Bool = false
    ) async throws -> Result {
        try await any(of: work, failImmediately: failImmediately)
    }

    /// Returns the value of the first task that succeeds. The others are cancelled.
    ///
    /// Throws ``AnyTaskError/noneSucceeded(_:)`` when all fail.
    public static func any<Result: Sendable, Problem: Error>(
        of tasks: [Task<Result, Problem>], failImmediately: Bool = false
    ) async throws -> Result {
        defer { for task in tasks { task.cancel() } }
        return try await any(
            of: tasks.map { task in { @Sendable in try await cancelable { try await task.value } } },
            failImmediately: failImmediately)
    }

    /// Returns the value of the first task that succeeds. The others are cancelled.
    public static func any<Result: Sendable, Problem: Error>(
        of tasks: Task<Result, Problem>..., failImmediately: Bool = false
    ) async throws -> Result {
        try await any(of: tasks, failImmediately: failImmediately)
    }
}

/// Waits for work that ignores cancellation: throws `CancellationError` as soon as the task is cancelled.
///
/// The work is cancelled then, but not awaited.
public func cancelable<Result: Sendable>(_ work: @escaping @concurrent @Sendable () async throws -> Result) async throws
    -> Result
{
    let result = OperatorState<Swift.Result<Result, any Error>?>(nil)
    let gate = Gate()
    let task = Task {
        result.exchange(await Swift.Result(catching: { try await work() }))
        gate.open()
    }
    await gate.wait()
    guard let result = result.value else {
        task.cancel()
        throw CancellationError()
    }
    return try result.get()
}

extension Result {
    /// Creates a result from the value or error of the work.
    public init(
        isolation: isolated (any Actor)? = #isolation, catching work: () async throws(Failure) -> Success
    ) async {
        do throws(Failure) {
            self = .success(try await work())
        } catch {
            self = .failure(error)
        }
    }
}
