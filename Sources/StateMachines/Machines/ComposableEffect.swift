/// An effect of a machine that may be made of several.
public enum ComposableEffect<Effect> {
    /// One effect, which the machine's `runIOEffect` runs.
    case just(Effect)
    /// All at the same time.
    case merge([ComposableEffect])
    /// One after the other; each begins when the stream of the one before it has ended.
    case concat([ComposableEffect])

    /// No effect.
    public static var none: Self { .merge([]) }
}

extension ComposableEffect: Sendable where Effect: Sendable {}
extension ComposableEffect: Equatable where Effect: Equatable {}

/// The effects of a machine, if they can be composed; `@ComposableEffect` writes the conformance.
public protocol ComposableEffectConvertible {
    /// The effect taken apart, down to those that can be run.
    func asComposableEffect() -> ComposableEffect<Self>
}

extension ComposableEffect {
    /// The whole as one effect of the runtime, of which `operation` makes the parts.
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
    /// The whole as one stream of results, of which `run` makes those of the parts.
    public func stream<Element: Sendable>(
        _ run: @escaping @Sendable (Effect) -> AsyncStream<Element>
    ) -> AsyncStream<Element> {
        .produced { output in await forward(run, to: output) }
    }

    private func forward<Element: Sendable>(
        _ run: @escaping @Sendable (Effect) -> AsyncStream<Element>, to output: Handover<Element>
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
