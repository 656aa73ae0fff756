public import Relays

extension Stream {
    /// A relay that follows this stream, for those who read at their own pace: views, loaders, other processes.
    ///
    /// It waits for the first value if there is none; throws when the task is cancelled before that. The relay keeps the
    /// chain alive; the chain does not keep the relay.
    nonisolated public func relay() async throws(CancellationError) -> StateRelay<Value> {
        await relay(initialValue: try await getCancelable())
    }

    /// A relay that follows this stream and begins with the given value where there is no current one.
    nonisolated public func relay(initialValue: Value) async -> StateRelay<Value> {
        let kept = Kept<AnySubscription?>(nil)
        let relay = StateRelay(outlet.current ?? initialValue, keeping: kept)
        kept.exchange(await tap { [weak relay] in relay?.update($0) })
        return relay
    }
}
