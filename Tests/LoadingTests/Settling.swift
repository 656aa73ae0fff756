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
