/// An effect of a machine that may be composed of several.
public enum ComposableEffect<Effect> {
    /// One effect, which the machine's `runIOEffect` runs.
    case just(Effect)
    /// All effects, concurrently.
    case merge([ComposableEffect])
    /// All effects in sequence. Each starts when the stream of the previous one has ended.
    case concat([ComposableEffect])

    /// No effect.
    public static var none: Self { .merge([]) }
}

extension ComposableEffect: Sendable where Effect: Sendable {}
extension ComposableEffect: Equatable where Effect: Equatable {}

/// The composable effects of a machine. `@ComposableEffect` adds the conformance.
public protocol ComposableEffectConvertible {
    /// Returns the effect decomposed into runnable ones.
    func asComposableEffect() -> ComposableEffect<Self>
}

extension ComposableEffect {
    /// Returns the composition as one effect of the runtime, whose parts `operation` creates.
    public func extract<Action: Sendable>(
        _ operation: (Effect) -> StateMachines.Effect<Action>
    ) -> StateMachines.Effect<Action> {
        switch self {
        case .just(let effect): operation(effect)
        case .merge(let effects): .merge(effects.map { $0.extract(operation) })
        case .concat(let effects): .concatenate(effects.map { $0.extract(operation) })
        }
    }
}

extension ComposableEffect where Effect: Sendable {
    /// Returns the composition as one stream of results, whose parts `run` creates.
    public func stream<Element: Sendable>(
        _ run: @escaping @Sendable (Effect) -> AsyncStream<Element>
    ) -> AsyncStream<Element> {
        .produced { output in await forward(run, to: output) }
    }

    private func forward<Element: Sendable>(
        _ run: @escaping @Sendable (Effect) -> AsyncStream<Element>, to output: ElementHandoff<Element>
    ) async {
        switch self {
        case .just(let effect):
            for await element in run(effect) { await output.put(element) }
        case .merge(let effects):
            await withDiscardingTaskGroup { group in
                for effect in effects { group.addTask { await effect.forward(run, to: output) } }
            }
        case .concat(let effects):
            for effect in effects where !Task.isCancelled { await effect.forward(run, to: output) }
        }
    }
}
