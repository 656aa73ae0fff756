extension Effect {
    /// Begins the effect once there was none of this id for an interval: each new one takes the place of the one before, whether
    /// that waits or runs. `.cancel(id:)` ends it.
    ///
    ///     return .run { send in await send(.found(try await search(query))) }
    ///         .debounce(id: CancelID.search, for: .milliseconds(300))
    ///
    /// - Parameter clock: What the interval is measured by. Default: the dependency `continuousClock`.
    public func debounce(
        id: some Hashable & Sendable, for interval: Duration, clock: (any Clock<Duration>)? = nil
    ) -> Self {
        if isNone { return self }
        let clock = clock ?? DependencyValues.current.continuousClock
        let gate = EffectGate { _ in .wait { (try? await clock.sleep(for: interval)) != nil } }
        return Self(.gated(self, gate)).cancellable(id: id, cancelInFlight: true)
    }

    /// The same, as The Composable Architecture writes it: `scheduler: mainQueue`.
    public func debounce(
        id: some Hashable & Sendable, for interval: Duration, scheduler: any Clock<Duration>
    ) -> Self {
        debounce(id: id, for: interval, clock: scheduler)
    }

    /// Begins at most one effect of this id in each interval: the first at once; of those that come before the interval is
    /// over, one when it is. One that runs already goes on. `.cancel(id:)` ends all.
    ///
    /// - Parameters:
    ///   - latest: Which one begins at the end of the interval: the latest that has come, or the first.
    ///   - clock: What the interval is measured by. Default: the dependency `continuousClock`.
    public func throttle(
        id: some Hashable & Sendable, for interval: Duration, latest: Bool, clock: (any Clock<Duration>)? = nil
    ) -> Self {
        if isNone { return self }
        let values = DependencyValues.current
        let (clock, throttles) = (clock ?? values.continuousClock, values.throttles)
        let key = EffectID(id)
        let gate = EffectGate { mark in
            switch throttles.begin(key, interval, latest: latest, clock, mark) {
            case .go: .go
            case .drop: .drop
            case .wait(let remaining, let ticket):
                .wait {
                    let isOver = (try? await clock.sleep(for: remaining)) != nil
                    return throttles.end(key, ticket, isOver: isOver, clock)
                }
            }
        }
        return Self(.gated(self, gate)).cancellable(id: id)
    }

    /// The same, as The Composable Architecture writes it: `scheduler: mainQueue`.
    public func throttle(
        id: some Hashable & Sendable, for interval: Duration, scheduler: any Clock<Duration>, latest: Bool
    ) -> Self {
        throttle(id: id, for: interval, latest: latest, clock: scheduler)
    }
}
