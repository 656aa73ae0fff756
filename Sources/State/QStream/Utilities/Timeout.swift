/// An operation exceeded its time limit.
public struct TimeoutError: Error, Hashable, CustomStringConvertible {
    /// The time limit.
    public let limit: Duration
    /// The file where the limit was set.
    public let file: String
    /// The line of ``file`` where the limit was set.
    public let line: Int

    public var description: String { "timed out after \(limit) (\(file):\(line))" }
}

/// Runs the operation. Throws ``TimeoutError`` when it exceeds the limit.
///
/// The operation is cancelled then, and awaited: it must react to cancellation.
public func withTimeout<Result: Sendable>(
    _ limit: Duration, clock: some Clock<Duration> = ContinuousClock(), file: String = #fileID, line: Int = #line,
    operation: @escaping @concurrent @Sendable () async throws -> Result
) async throws -> Result {
    try await withThrowingTaskGroup(of: Result.self) { group in
        group.addTask(operation: operation)
        group.addTask {
            try await clock.sleep(for: limit)
            throw TimeoutError(limit: limit, file: file, line: line)
        }
        defer { group.cancelAll() }
        // Two tasks were added, so there is a first one.
        return try await group.next()!
    }
}

extension Task where Success == Never, Failure == Never {
    /// Runs the operation with a time limit, like ``withTimeout(_:clock:file:line:operation:)``.
    public static func withTimeout<Result: Sendable>(
        _ limit: Duration, clock: some Clock<Duration> = ContinuousClock(), file: String = #fileID, line: Int = #line,
        operation: @escaping @concurrent @Sendable () async throws -> Result
    ) async throws -> Result {
        try await QStream.withTimeout(limit, clock: clock, file: file, line: line, operation: operation)
    }

    /// Sleeps for the given number of seconds. Throws when the task is cancelled.
    public static func sleep(timeInterval seconds: Double) async throws {
        try await sleep(for: .seconds(seconds))
    }
}
