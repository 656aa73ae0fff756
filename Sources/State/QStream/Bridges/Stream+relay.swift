public import Relays

extension Stream {
    /// Returns a relay that follows this stream, for readers with their own pace: views, loaders, other processes.
    ///
    ///     self                    1──2──3──4──
    ///     relay().currentValue    1──2──3──4──
    ///     a reader, busy with 1   1───────3─4──   (skips to the newest)
    ///
    /// Waits for the first value if there is none. Throws when the task is cancelled before that. The relay keeps the
    /// chain alive; the chain does not keep the relay alive.
    nonisolated public func relay() async throws(CancellationError) -> StateRelay<Value> {
        await relay(initialValue: try await getCancelable())
    }

    /// Returns a relay that follows this stream, and begins with the given value if there is no current one.
    ///
    ///     self                                   ───1──2──
    ///     relay(initialValue: 0).currentValue    0──1──2──
    ///
    /// The relay keeps the chain alive; the chain does not keep the relay alive.
    nonisolated public func relay(initialValue: Value) async -> StateRelay<Value> {
        let subscription = OperatorState<AnySubscription?>(nil)
        let relay = StateRelay(outlet.current ?? initialValue, keeping: subscription)
        // Not `[weak relay]`: a closure with a list of captures would leave the sender's actor (Docs/Guides/QStream.md).
        let weak = Weak(relay)
        subscription.exchange(await tap { weak.object?.update($0) })
        return relay
    }
}
