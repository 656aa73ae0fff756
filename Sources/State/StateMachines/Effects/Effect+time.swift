extension Effect {
    /// Starts the effect after an interval without other effects of this id. Each new one replaces the previous one,
    /// whether that waits or runs. `.cancel(id:)` ends it.
    ///
    ///     return .run { send in await send(.found(try await search(query))) }
    ///         .debounce(id: CancelID.search, for: .milliseconds(300))
    ///
    /// - Parameter clock: The clock of the interval. Default: the dependency `continuousClock`.
    public func debounce(
        id: some Hashable & Sendable, for interval: Duration, clock: (any Clock<Duration>)? = nil
    ) -> Self {
        if isNone { return self }
        let clock = clock ?? DependencyValues.current.continuousClock
        let gate = EffectGate { _ in .wait { (try? await clock.sleep(for: interval)) != nil } }
        return Self(.gated(self, gate)).cancellable(id: id, cancelInFlight: true)
    }

    /// Debounces like ``debounce(id:for:clock:)``, with the parameter name of The Composable Architecture: `scheduler:
    /// mainQueue`.
    public func debounce(
        id: some Hashable & Sendable, for interval: Duration, scheduler: any Clock<Duration>
    ) -> Self {
        debounce(id: id, for: interval, clock: scheduler)
    }

    /// Starts at most one effect of this id in each interval: the first at once, and one of those that follow at the
    /// end of the interval. A running effect continues. `.cancel(id:)` ends all.
    ///
    /// - Parameters:
    ///   - latest: True to start the latest effect of an interval at its end, false to start the first one.
    ///   - clock: The clock of the interval. Default: the dependency `continuousClock`.
    public func throttle(
        id: some Hashable & Sendable, for interval: Duration, latest: Bool, clock: (any Clock<Duration>)? = nil
    ) -> Self {
        if isNone { return self }
        let values = DependencyValues.current
        let (clock, throttles) = (clock ?? values.continuousClock, values.throttles)
        let key = EffectID(id)
        let gate = EffectGate { flag in
            switch throttles.startEffect(key, interval, latest: latest, clock, flag) {
            case .go: .go
            case .drop: .drop
            case .wait(let remaining, let ticket):
                .wait {
                    let isOver = (try? await clock.sleep(for: remaining)) != nil
                    return throttles.endEffect(key, ticket, isOver: isOver, clock)
                }
            }
        }
        return Self(.gated(self, gate)).cancellable(id: id)
    }

    /// Throttles like ``throttle(id:for:latest:clock:)``, with the parameter name of The Composable Architecture:
    /// `scheduler: mainQueue`.
    public func throttle(
        id: some Hashable & Sendable, for interval: Duration, scheduler: any Clock<Duration>, latest: Bool
    ) -> Self {
        throttle(id: id, for: interval, latest: latest, clock: scheduler)
    }
}
