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
