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
    private var queue: [QueuedAction<Action>] = []
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
        effectsOn executor: EffectExecutor? = nil,
        reduce: @escaping (inout State, Action) -> Effect<Action>
    ) {
        self.reduce = reduce
        self.dependencies = dependencies.forMachine()
        effects = EffectTasks(onEnd: onEffectEnd, executor: executor)
    }

    deinit { effects.close() }

    /// Reduces an action, and those it sends at once, and starts the effects.
    ///
    /// From within a reducer it only queues the action, which is reduced next.
    ///
    /// - Parameter deliver: gets the actions that effects send, in their tasks; it has to come back to the owner and
    ///   call this method, once. It must not hold the owner, whose effects would keep it alive.
    /// - Returns: The effects of the action. Those of an action that an effect has sent belong to the task of the action that
    ///   the effect comes of.
    @discardableResult
    public func send(
        _ action: Action, to state: inout State, deliver: @escaping @Sendable (Action) async -> Void
    ) -> StoreTask {
        let life = EffectDelivery.take(by: effects)
        if let life, life.isOver { return StoreTask(life.group) }
        return send(action, to: &state, in: life?.group) {
            { action, life in
                await EffectDelivery.bring(life) { await deliver(action) }
                return nil
            }
        }
    }

    /// - Parameters:
    ///   - group: to which the effects belong; nil for one of their own.
    ///   - deliver: called for each action that has effects.
    func send(
        _ action: Action, to state: inout State, in group: EffectGroup?, deliver: () -> Deliver<Action>
    ) -> StoreTask {
        if isReducing { return enqueue(action, in: group) }
        isReducing = true
        defer { isReducing = false }
        return DependencyValues.$current.withValue(dependencies) {
            var group = group
            perform(action, &state, &group, deliver)
            while !isQueueEmpty {
                let next = queue.removeFirst()
                isQueueEmpty = queue.isEmpty
                if next.group == nil {
                    perform(next.action, &state, &group, deliver)
                } else {
                    var own = next.group
                    perform(next.action, &state, &own, deliver)
                    next.isReduced()
                }
            }
            return StoreTask(group)
        }
    }

    func enqueue(_ action: Action, in group: EffectGroup?) -> StoreTask {
        let group = group ?? EffectGroup(of: effects, isForLater: true)
        queue.append(QueuedAction(action, group))
        isQueueEmpty = false
        return StoreTask(group)
    }

    private func perform(
        _ action: Action, _ state: inout State, _ group: inout EffectGroup?, _ deliver: () -> Deliver<Action>
    ) {
        let effect = reduce(&state, action)
        if effect.isNone { return }
        effects.begin(effect, from: action, queue: &queue, group: &group, deliver: deliver())
        isQueueEmpty = queue.isEmpty
    }
}
