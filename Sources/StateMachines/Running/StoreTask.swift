/// The effects that a `send` has started, those of the actions that they send included.
///
/// What the code of an effect sends to the store itself, and not by its ``Send``, has a task of its own.
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

    /// Cancels all of them. It does not wait for their end.
    public func cancel() { group?.cancel() }
}
