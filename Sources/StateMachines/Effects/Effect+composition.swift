extension Effect {
    /// Runs effects at the same time.
    public static func merge(_ effects: Self...) -> Self { merge(effects) }

    /// Runs effects at the same time.
    public static func merge(_ effects: some Sequence<Self>) -> Self {
        // Flat, so that merging one by one does not make a tree as deep as there are effects.
        let effects = effects.flatMap { effect in
            if case .merge(let parts) = effect.operation { return parts }
            return effect.isNone ? [] : [effect]
        }
        return effects.count > 1 ? Self(.merge(effects)) : effects.first ?? .none
    }

    /// Runs effects one after the other; each starts when the one before it has ended.
    public static func concatenate(_ effects: Self...) -> Self { concatenate(effects) }

    /// Runs effects one after the other; each starts when the one before it has ended.
    public static func concatenate(_ effects: some Sequence<Self>) -> Self {
        let effects = effects.flatMap { effect in
            if case .concatenate(let parts) = effect.operation { return parts }
            return effect.isNone ? [] : [effect]
        }
        return effects.count > 1 ? Self(.concatenate(effects)) : effects.first ?? .none
    }

    /// Runs this effect and another at the same time.
    public func merge(with other: Self) -> Self {
        if isNone { return other }
        return other.isNone ? self : .merge(self, other)
    }

    /// Runs this effect, then another.
    public func concatenate(with other: Self) -> Self {
        if isNone { return other }
        return other.isNone ? self : .concatenate(self, other)
    }

    /// Makes the effect one that `.cancel(id:)` ends. One that is cancelled before it has started never runs.
    ///
    /// - Parameter cancelInFlight: whether effects with this id that were returned before end when this one starts.
    public func cancellable(id: some Hashable & Sendable, cancelInFlight: Bool = false) -> Self {
        isNone ? self : Self(.cancellable(self, EffectID(id), cancelInFlight: cancelInFlight))
    }

    /// Ends all effects with this id that were returned before this one, whether they have started or not.
    ///
    /// In an element of `forEach` or a child of `ifLet` it reaches that element's effects, not its siblings'.
    public static func cancel(id: some Hashable & Sendable) -> Self { Self(.cancel(EffectID(id))) }

    /// The same effect with its actions made into others: how a child's effects become the parent's.
    public func map<Other: Sendable>(_ transform: @escaping @Sendable (Action) -> Other) -> Effect<Other> {
        compactMap { transform($0) }
    }

    /// The same effect with its actions made into others; those that become nil are not sent.
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
