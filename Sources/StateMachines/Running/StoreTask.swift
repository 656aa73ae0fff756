/// The effects that a `send` has started, those of the actions that they send included.
public struct StoreTask: Sendable {
    private let group: EffectGroup?

    init(_ group: EffectGroup?) { self.group = group }

    /// Returns when all of them have ended. Cancelling the task that waits cancels them.
    public func finish() async {
        guard let group else { return }
        await withTaskCancellationHandler {
            await group.finish()
        } onCancel: {
            group.cancel()
        }
    }

    /// Cancels all of them. It does not wait for their end.
    public func cancel() { group?.cancel() }
}
