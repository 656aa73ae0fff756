/// The effects that a `send` has started, including those of the actions that they send.
///
/// A `send` that an effect calls on the store directly, instead of its ``Send``, has a separate task.
public struct StoreTask: Sendable {
    private let group: EffectGroup?

    init(_ group: EffectGroup?) { self.group = group }

    /// Returns when all of them have ended. Cancellation of the waiting task cancels them.
    public func finish() async {
        guard let group else { return }
        await withTaskCancellationHandler {
            await group.finish()
        } onCancel: {
            group.cancel()
        }
    }

    /// Returns when all of them have ended, or when the waiting task is cancelled, which cancels none of them.
    func ended() async {
        guard let group else { return }
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        let wait = Task {
            await group.finish()
            continuation.finish()
        }
        for await _ in stream {}
        wait.cancel()
    }

    /// Cancels all of them, without waiting for their end.
    public func cancel() { group?.cancel() }
}
