internal import Platform

/// The effects that a `send` of a ``TestStore`` has started, including those of the actions that they send.
public struct TestStoreTask: Sendable {
    private let task: StoreTask
    private let timeout: Duration

    init(_ task: StoreTask, _ timeout: Duration) {
        self.task = task
        self.timeout = timeout
    }

    /// Cancels all of them, without waiting for their end.
    public func cancel() { task.cancel() }

    /// Returns when all of them have ended. If they have not in time, the test fails.
    ///
    /// - Parameter timeout: the maximum time to wait. Default: the timeout of the test store, five seconds unless it
    ///   was changed.
    public func finish(
        timeout: Duration? = nil, fileID: StaticString = #fileID, filePath: StaticString = #filePath,
        line: UInt = #line, column: UInt = #column
    ) async {
        let location = CodeLocation(fileID, filePath, line, column)
        let isFinished = await withTaskGroup(of: Bool?.self) { group in
            group.addTask {
                await task.ended()
                return Task.isCancelled ? nil : true
            }
            group.addTask {
                var patience = Patience(timeout ?? self.timeout)
                return (try? await patience.wait()) == nil ? nil : false
            }
            defer { group.cancelAll() }
            for await case let result? in group { return result }
            return true
        }
        guard !isFinished else { return }
        reportIssue(
            "Effects of a sent action still run after \(timeout ?? self.timeout). Let them end, cancel them, or pass "
                + "a longer timeout to 'finish'.", at: location)
    }
}

extension TestStore where Action: CasePathable {
    /// Sends the action of a case path without a payload: `send(\.tap)`.
    @discardableResult
    public func send(
        _ path: CaseKeyPath<Action, Void>, assert update: ((inout State) throws -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async -> TestStoreTask {
        await send(
            AnyCasePath(path).embed(()), assert: update, at: CodeLocation(fileID, filePath, line, column))
    }

    /// Sends the action of a case path with a payload: `send(\.rows[id: 1].rename, "a")`.
    @discardableResult
    public func send<Value>(
        _ path: CaseKeyPath<Action, Value>, _ value: Value, assert update: ((inout State) throws -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async -> TestStoreTask {
        await send(
            AnyCasePath(path).embed(value), assert: update, at: CodeLocation(fileID, filePath, line, column))
    }
}
