extension Effect {
    /// Returns an effect that runs the effects concurrently.
    public static func merge(_ effects: Self...) -> Self { merge(effects) }

    /// Returns an effect that runs the effects concurrently.
    public static func merge(_ effects: some Sequence<Self>) -> Self {
        // Flattened, so that successive merges do not create a tree as deep as the number of effects.
        let effects = effects.flatMap { effect in
            if case .merge(let parts) = effect.operation { return parts }
            return effect.isNone ? [] : [effect]
        }
        return effects.count > 1 ? Self(.merge(effects)) : effects.first ?? .none
    }

    /// Returns an effect that runs the effects in sequence. Each starts when the previous one has ended.
    public static func concatenate(_ effects: Self...) -> Self { concatenate(effects) }

    /// Returns an effect that runs the effects in sequence. Each starts when the previous one has ended.
    public static func concatenate(_ effects: some Sequence<Self>) -> Self {
        let effects = effects.flatMap { effect in
            if case .concatenate(let parts) = effect.operation { return parts }
            return effect.isNone ? [] : [effect]
        }
        return effects.count > 1 ? Self(.concatenate(effects)) : effects.first ?? .none
    }

    /// Returns an effect that runs this effect and another concurrently.
    public func merge(with other: Self) -> Self {
        if isNone { return other }
        return other.isNone ? self : .merge(self, other)
    }

    /// Returns an effect that runs this effect, then another.
    public func concatenate(with other: Self) -> Self {
        if isNone { return other }
        return other.isNone ? self : .concatenate(self, other)
    }

    /// Returns a cancellable effect, which `.cancel(id:)` ends. If cancelled before its start, it never runs.
    ///
    /// - Parameter cancelInFlight: whether earlier effects with this id end when this one starts.
    public func cancellable(id: some Hashable & Sendable, cancelInFlight: Bool = false) -> Self {
        isNone ? self : Self(.cancellable(self, EffectID(id), cancelInFlight: cancelInFlight))
    }

    /// Returns an effect that ends all effects with this id that were returned before it, whether they have started or
    /// not.
    ///
    /// In an element of `forEach` or a child of `ifLet` it affects that element's effects, not its siblings'.
    public static func cancel(id: some Hashable & Sendable) -> Self { Self(.cancel(EffectID(id))) }

    /// Returns the effect with transformed actions, which turns a child's effects into the parent's.
    public func map<Other: Sendable>(_ transform: @escaping @Sendable (Action) -> Other) -> Effect<Other> {
        compactMap { transform($0) }
    }

    /// Returns the effect with transformed actions. Nil results are not sent.
    public func compactMap<Other: Sendable>(_ transform: @escaping @Sendable (Action) -> Other?) -> Effect<Other> {
        switch operation {
        case .none: .none
        case .send(let action): transform(action).map { .send($0) } ?? .none
        case .run(let work):
            Effect<Other>(
                .run(
                    EffectWork(priority: work.priority, location: work.location) { send in
                        await work.run(send.from(transform))
                    }))
        case .merge(let effects): Effect<Other>(.merge(effects.map { $0.compactMap(transform) }))
        case .concatenate(let effects): Effect<Other>(.concatenate(effects.map { $0.compactMap(transform) }))
        case .cancellable(let effect, let id, let cancelInFlight):
            Effect<Other>(.cancellable(effect.compactMap(transform), id, cancelInFlight: cancelInFlight))
        case .cancel(let id): Effect<Other>(.cancel(id))
        case .gated(let effect, let gate): Effect<Other>(.gated(effect.compactMap(transform), gate))
        }
    }
}
