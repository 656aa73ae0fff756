internal import Platform

extension TestStore {
    /// Waits for the next action of an effect, and checks the action and its changes.
    public func receive(
        _ expected: Action, timeout: Duration? = nil, assert update: ((inout State) throws -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async where Action: Equatable {
        await receive(
            ValueText.summary(of: expected), expected: expected, timeout, update,
            CodeLocation(fileID, filePath, line, column)
        ) { $0 == expected }
    }

    /// Waits for the next action of an effect, and checks its case and its changes.
    public func receive<Value>(
        _ path: CaseKeyPath<Action, Value>, timeout: Duration? = nil,
        assert update: ((inout State) throws -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async where Action: CasePathable {
        let action = AnyCasePath(path)
        await receive(
            Self.name(of: path), timeout, update, CodeLocation(fileID, filePath, line, column)
        ) { action.extract($0) != nil }
    }

    /// Waits for the next action of an effect, and checks its case, its payload and its changes.
    public func receive<Value: Equatable>(
        _ path: CaseKeyPath<Action, Value>, _ value: Value, timeout: Duration? = nil,
        assert update: ((inout State) throws -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async where Action: CasePathable {
        let action = AnyCasePath(path)
        let expected = action.embed(value)
        await receive(
            ValueText.summary(of: expected), expected: expected, timeout, update,
            CodeLocation(fileID, filePath, line, column)
        ) { action.extract($0) == value }
    }

    /// Waits for the next action of an effect, and checks it with a condition, and its changes.
    public func receive(
        _ isExpected: (Action) -> Bool, timeout: Duration? = nil,
        assert update: ((inout State) throws -> Void)? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async {
        let location = CodeLocation(fileID, filePath, line, column)
        await receive("an action that the test's condition accepts", timeout, update, location, isExpected)
    }

    /// Waits for the end of all effects. Unless exhaustivity is off, all their actions must have been received.
    public func finish(
        timeout: Duration? = nil,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async {
        let location = CodeLocation(fileID, filePath, line, column)
        counts.setLocation(location)
        let isFinished = await wait(timeout) { effects.origins.isEmpty }
        if !isFinished { reportIssue(Self.unfinished(effects.origins, "after waiting for them"), at: location) }
        guard !assertions.received.isEmpty else { return }
        let actions = assertions.takeUnreported()
        if !actions.isEmpty {
            exhaustivity.report(Self.unreceived(actions, "but the test has ended"), at: location)
        }
        skipAllReceived()
    }

    /// Continues from the newest state, without checking the actions that effects have sent.
    ///
    /// - Parameter strict: whether it is an issue when there are none.
    public func skipReceivedActions(
        strict: Bool = true,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async {
        let location = CodeLocation(fileID, filePath, line, column)
        counts.setLocation(location)
        if strict, assertions.received.isEmpty {
            reportIssue("There were no received actions to skip. \(Self.removalHint)", at: location)
        }
        let last = assertions.received.last
        skipAllReceived()
        if let last { await runRemainingWork(last) }
    }

    /// Cancels the running effects, and waits for their end.
    ///
    /// - Parameter strict: whether it is an issue when there are none.
    public func skipInFlightEffects(
        strict: Bool = true,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) async {
        let location = CodeLocation(fileID, filePath, line, column)
        counts.setLocation(location)
        if strict, effects.origins.isEmpty {
            reportIssue("There were no effects to skip. \(Self.removalHint)", at: location)
        }
        effects.cancelAll()
        let isFinished = await wait(nil) { effects.origins.isEmpty }
        if !isFinished { reportIssue(Self.unfinished(effects.origins, "although they were cancelled"), at: location) }
    }

    // MARK: Parts

    private func receive(
        _ name: String, expected: Action? = nil, _ timeout: Duration?, _ update: ((inout State) throws -> Void)?,
        _ location: CodeLocation, _ isExpected: (Action) -> Bool
    ) async {
        counts.setLocation(location)
        _ = await wait(timeout) {
            let isThere =
                exhaustivity == .on
                ? !assertions.received.isEmpty : assertions.received.contains { isExpected($0.action) }
            // Without a running effect, no further action comes.
            return isThere || effects.origins.isEmpty
        }
        if exhaustivity != .on, let index = assertions.received.firstIndex(where: { isExpected($0.action) }) {
            let actions = assertions.received[..<index].map(\.action)
            if let skipped = assertions.removeFirst(index) { advance(to: skipped) }
            if !actions.isEmpty { exhaustivity.report("Skipped: \(Self.list(actions))", at: location) }
        }
        guard let entry = assertions.received.first, exhaustivity == .on || isExpected(entry.action) else {
            let running = effects.origins
            let reason =
                running.isEmpty
                ? "no running effect could send it. First send the action whose effect sends it, or remove the 'receive'."
                : "no running effect sent it in time: \(Self.list(running)). Advance the clock or end the work that they "
                    + "wait for, or give 'receive' a longer 'timeout'."
            return reportIssue("Expected to receive \(name), but \(reason)", at: location)
        }
        assertions.removeFirst()
        guard isExpected(entry.action) else {
            advance(to: entry)
            let difference = expected.map { "\n\n" + Self.difference($0, entry.action) } ?? ""
            return reportIssue(
                "Expected to receive \(name), but received \(ValueText.summary(of: entry.action)).\(difference)",
                at: location)
        }
        check(entry, against: update, at: location)
        await runRemainingWork(entry)
    }

    /// Lets the effect that has sent an action continue until it waits: at the end of the test it would not get the
    /// main actor any more.
    private func runRemainingWork(_ entry: PendingAssertions<State, Action>.Entry) async {
        _ = await wait(.seconds(1)) { !counts.isSending(entry.number) }
        await effects.executor?.waitUntilIdle()
    }

    /// Waits until the condition holds. Returns false if it did not in time.
    private func wait(_ timeout: Duration?, until condition: () -> Bool) async -> Bool {
        var patience = Patience(timeout ?? self.timeout)
        while true {
            let count = signal.count
            if condition() { return true }
            if patience.isExhausted() || Task.isCancelled { return false }
            await signal.wait(after: count, until: .now + patience.step)
        }
    }

    /// Returns a name such as `\.ioResult.success`.
    private static func name<Value>(of path: CaseKeyPath<Action, Value>) -> String {
        "\\" + Case<Action>()[keyPath: path].names.joined()
    }
}

extension TestStore {
    nonisolated private static var removalHint: String { "Remove the call, or pass 'strict: false'." }

    nonisolated static func list(_ actions: [Action]) -> String {
        let shown = actions.prefix(10).map { ValueText.summary(of: $0) }.joined(separator: ", ")
        return actions.count > 10 ? "\(shown) and \(actions.count - 10) more" : shown
    }

    nonisolated static func unreceived(_ actions: [Action], _ when: String) -> String {
        "\(actions.count == 1 ? "An action" : "\(actions.count) actions") must be received \(when): \(list(actions)). "
            + "Assert it with 'receive', skip it with 'skipReceivedActions', or set 'exhaustivity' to '.off'."
    }

    nonisolated static func unfinished(_ origins: [Action], _ when: String) -> String {
        "\(origins.count == 1 ? "An effect still runs" : "\(origins.count) effects still run") \(when), started by "
            + "\(list(origins)). Let the effect end, cancel it, or call 'skipInFlightEffects'."
    }

    nonisolated static func difference<Value: Sendable>(_ expected: Value, _ actual: Value) -> String {
        text(expected, actual)
    }

    static func difference(_ expected: State, _ actual: State) -> String { text(expected, actual) }

    private nonisolated static func text(_ expected: Any, _ actual: Any) -> String {
        let difference =
            TextDiff.ofValues(expected: expected, actual: actual)
            ?? "    (both have the same description: \(ValueText.summary(of: actual)); == distinguishes them)"
        return difference + "\n\n(expected: −, actual: +)"
    }
}
