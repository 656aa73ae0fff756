/// A reducer with its effects, for an object that keeps the state itself: a distributed actor, for example.
///
///     distributed func send(_ input: Door.Input) { advance(.input(input)) }
///
///     private func advance(_ action: Door.Action) {
///         machine.send(action, to: &state) { [weak self] action in
///             _ = await self?.whenLocal { $0.advance(action) }
///         }
///     }
///
/// It belongs to the isolation of its owner. When it is released, its effects are cancelled.
public final class EmbeddedMachine<State, Action: Sendable> {
    private let reduce: (inout State, Action) -> Effect<Action>
    /// With which what comes next is reduced.
    var dependencies: DependencyValues
    let effects: EffectTasks<Action>
    private var queue: [Action] = []
    /// Asked with each action; to ask the queue itself costs more, since this code is not specialised.
    private var isQueueEmpty = true
    private(set) var isReducing = false

    /// - Parameter prepare: replaces dependencies for the reducer and its effects.
    public convenience init<R: Reducer>(
        @ReducerBuilder<State, Action> reducer: () -> R,
        withDependencies prepare: (inout DependencyValues) -> Void = { _ in }
    ) where R.State == State, R.Action == Action {
        let values = DependencyValues.current.changed(by: prepare)
        let reducer = DependencyValues.$current.withValue(values) { reducer() }
        self.init(dependencies: values) { reducer.reduce(into: &$0, action: $1) }
    }

    init(
        dependencies: DependencyValues, onEffectEnd: (@Sendable () -> Void)? = nil,
        reduce: @escaping (inout State, Action) -> Effect<Action>
    ) {
        self.reduce = reduce
        self.dependencies = dependencies.forMachine()
        effects = EffectTasks(onEnd: onEffectEnd)
    }

    deinit { effects.close() }

    /// Reduces an action, and those it sends at once, and starts the effects.
    ///
    /// From within a reducer it only queues the action: it is reduced next, and the task returned is empty.
    ///
    /// - Parameter deliver: gets the actions that effects send, in their tasks; it has to come back to the owner and
    ///   call this method. It must not hold the owner, whose effects would keep it alive.
    @discardableResult
    public func send(
        _ action: Action, to state: inout State, deliver: @escaping @Sendable (Action) async -> Void
    ) -> StoreTask {
        if isReducing { return enqueue(action) }
        isReducing = true
        defer { isReducing = false }
        return DependencyValues.$current.withValue(dependencies) {
            var group: EffectGroup?
            perform(action, &state, &group, deliver)
            while !isQueueEmpty {
                let next = queue.removeFirst()
                isQueueEmpty = queue.isEmpty
                perform(next, &state, &group, deliver)
            }
            return StoreTask(group)
        }
    }

    func enqueue(_ action: Action) -> StoreTask {
        queue.append(action)
        isQueueEmpty = false
        return StoreTask(nil)
    }

    private func perform(
        _ action: Action, _ state: inout State, _ group: inout EffectGroup?,
        _ deliver: @escaping @Sendable (Action) async -> Void
    ) {
        let effect = reduce(&state, action)
        if effect.isNone { return }
        effects.begin(effect, from: action, queue: &queue, group: &group, deliver: deliver)
        isQueueEmpty = queue.isEmpty
    }
}
