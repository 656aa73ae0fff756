import Testing

/// Lets other tasks run until the condition holds; gives up (and records an issue) after two minutes.
@MainActor
func eventually(
    _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool
) async {
    let deadline = ContinuousClock.now + .seconds(120)
    while !condition() {
        guard ContinuousClock.now < deadline else {
            Issue.record("did not happen in two minutes: \(what)", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}

/// Lets everything run that can, so that what must not happen had its chance.
@MainActor
func settle() async {
    for _ in 0..<200 { await Task.yield() }
}

extension Task where Failure == Never {
    /// The value, once it is there. A test whose time is over cancels the task, and ends: else it would wait for ever for what it alone
    /// would have brought about, and the process of the tests with it.
    @MainActor var ended: Success {
        get async {
            await withTaskCancellationHandler {
                await value
            } onCancel: {
                cancel()
            }
        }
    }
}
