import Testing

/// Lets other tasks run until the condition holds; records an issue after two minutes.
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

/// Lets all runnable tasks run, so that unwanted effects would occur.
@MainActor
func settle() async {
    for _ in 0..<200 { await Task.yield() }
}

extension Task where Failure == Never {
    /// The task's result. A timed-out test cancels the task and ends; otherwise it would wait forever for events that it alone causes,
    /// and so would the test process.
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
