/// A reducer with its effects, for an object that stores the state itself: a distributed actor, for example.
///
///     distributed func send(_ input: Door.Input) { advance(.input(input)) }
///
/// It belongs to the isolation of its owner. When it is released, its effects are cancelled.
public final class EmbeddedReducer<State, Action: Sendable> {
    private let reduce: (inout State, Action) -> Effect<Action>
    /// The dependencies for the next actions.
    var dependencies: DependencyValues
    let effects: EffectTasks<Action>
    private var queue: [QueuedAction<Action>] = []
    /// True if `queue` is empty. Read for each action, because a read of the queue costs more in code that is not
    /// specialised.
    private var isQueueEmpty = true
    private(set) var isReducing = false

    /// Creates a machine.
    ///
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
    /// - Parameter deliver: receives the actions that effects send, in their tasks. It must return to the owner and
    ///   call this method, once. It must not retain the owner, whose effects would keep it alive.
    /// - Returns: The effects of the action. For an action sent by an effect, they belong to the task of the action
    ///   that caused the effect.
    @discardableResult
    public func send(
        _ action: Action, to state: inout State, deliver: @escaping @Sendable (Action) async -> Void
    ) -> StoreTask {
        let lifetime = EffectDelivery.takeEffect(by: effects)
        if let lifetime, lifetime.isOver { return StoreTask(lifetime.group) }
        return send(action, to: &state, in: lifetime?.group) {
            { action, lifetime in
                await EffectDelivery.withCurrent(lifetime) { await deliver(action) }
                return nil
            }
        }
    }

    /// Reduces an action in a group.
    ///
    /// - Parameters:
    ///   - group: the group of the effects; nil for a new one.
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
                    var nextGroup = next.group
                    perform(next.action, &state, &nextGroup, deliver)
                    next.markReduced()
                }
            }
            return StoreTask(group)
        }
    }

    func enqueue(_ action: Action, in group: EffectGroup?) -> StoreTask {
        let group = group ?? EffectGroup(of: effects, isDeferred: true)
        queue.append(QueuedAction(action, group))
        isQueueEmpty = false
        return StoreTask(group)
    }

    private func perform(
        _ action: Action, _ state: inout State, _ group: inout EffectGroup?, _ deliver: () -> Deliver<Action>
    ) {
        let effect = reduce(&state, action)
        if effect.isNone { return }
        effects.startEffect(effect, from: action, queue: &queue, group: &group, deliver: deliver())
        isQueueEmpty = queue.isEmpty
    }
}
