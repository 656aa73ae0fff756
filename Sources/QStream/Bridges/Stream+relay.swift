public import Relays

extension Stream {
    /// A relay that follows this stream, for those who read at their own pace: views, loaders, other processes.
    ///
    ///     self                    1──2──3──4──
    ///     relay().currentValue    1──2──3──4──
    ///     a reader, busy with 1   1───────3─4──   (skips to the newest)
    ///
    /// It waits for the first value if there is none; throws when the task is cancelled before that. The relay keeps the
    /// chain alive; the chain does not keep the relay.
    nonisolated public func relay() async throws(CancellationError) -> StateRelay<Value> {
        await relay(initialValue: try await getCancelable())
    }

    /// A relay that follows this stream and begins with the given value where there is no current one.
    ///
    ///     self                                   ───1──2──
    ///     relay(initialValue: 0).currentValue    0──1──2──
    ///
    /// The relay keeps the chain alive; the chain does not keep the relay.
    nonisolated public func relay(initialValue: Value) async -> StateRelay<Value> {
        let kept = Kept<AnySubscription?>(nil)
        let relay = StateRelay(outlet.current ?? initialValue, keeping: kept)
        // Not `[weak relay]`: a closure with a list of captures would leave the sender's actor (Docs/QStream.md).
        let weak = Weak(relay)
        kept.exchange(await tap { weak.object?.update($0) })
        return relay
    }
}
