/// Something was not done in the time it was given.
public struct TimeoutError: Error, Hashable, CustomStringConvertible {
    /// How long the work was given.
    public let limit: Duration
    /// Where the limit was set.
    public let file: String
    /// The line of ``file`` where the limit was set.
    public let line: Int

    public var description: String { "not done within \(limit) (\(file):\(line))" }
}

/// Does the work, or throws ``TimeoutError`` when it takes longer than the limit.
///
/// The work is cancelled then, and waited for: it must heed cancellation.
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
        // There are two tasks, so there is a first one.
        return try await group.next()!
    }
}

extension Task where Success == Never, Failure == Never {
    /// The same as ``withTimeout(_:clock:file:line:operation:)``.
    public static func withTimeout<Result: Sendable>(
        _ limit: Duration, clock: some Clock<Duration> = ContinuousClock(), file: String = #fileID, line: Int = #line,
        operation: @escaping @concurrent @Sendable () async throws -> Result
    ) async throws -> Result {
        try await QStream.withTimeout(limit, clock: clock, file: file, line: line, operation: operation)
    }

    /// Sleeps for so many seconds. Throws when the task is cancelled.
    public static func sleep(timeInterval seconds: Double) async throws {
        try await sleep(for: .seconds(seconds))
    }
}
