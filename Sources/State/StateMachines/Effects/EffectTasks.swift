import Synchronization

/// Runs the effects of one store or host, and ends them at its release.
///
/// Usable from any isolation, since a host may be released, and effects may end, in any isolation.
final class EffectTasks<Action: Sendable>: EffectRegistry {
    /// A running effect, with the action that caused it.
    private struct Running: Sendable {
        let task: Task<Void, Never>
        let flags: [CancellationFlag]
        let origin: Action
    }

    /// An effect returned by a reducer, with its registrations.
    private struct Plan {
        let effect: PlannedEffect<Action>
        var registrations: [EffectRegistration] = []
        /// The marks of its gates.
        var flags: [CancellationFlag] = []
    }

    /// The running effects and the registrations, under the lock.
    private struct Contents: Sendable {
        var running: [UInt64: Running] = [:]
        var registrations: [AnyID: [EffectRegistration]] = [:]
        var lastNumber: UInt64 = 0
        var lastPlan: UInt64 = 0
        var isClosed = false

        func reached(by id: EffectID, from position: EffectPosition) -> [EffectRegistration] {
            registrations[id.name, default: []].filter { $0.id.isReached(by: id) && position.reaches($0.position) }
        }
    }

    private let contents = Mutex(Contents())
    /// Called after an effect has ended.
    private let onEnd: (@Sendable () -> Void)?
    /// The executor of effects without an actor; nil for the global pool.
    let executor: EffectExecutor?

    init(onEnd: (@Sendable () -> Void)? = nil, executor: EffectExecutor? = nil) {
        self.onEnd = onEnd
        self.executor = executor
    }

    /// The actions whose effects have not ended, in the order of their start.
    var origins: [Action] {
        contents.withLock { $0.running.sorted { $0.key < $1.key }.map(\.value.origin) }
    }

    /// The number of cancellable parts of effects that have not ended.
    var registrationCount: Int { contents.withLock { $0.registrations.values.reduce(0) { $0 + $1.count } } }

    /// Executes the parts that need not wait, and starts the rest in a task.
    ///
    /// - Parameters:
    ///   - queue: receives the actions of `.send`.
    ///   - group: the tasks of the same `send`; created when the first one starts.
    func startEffect(
        _ effect: Effect<Action>, from origin: Action, queue: inout [QueuedAction<Action>], group: inout EffectGroup?,
        deliver: @escaping Deliver<Action>
    ) {
        let plan = plan(effect)
        guard let remaining = advance(plan.effect, group, &queue) else { return remove(plan.registrations) }
        let joined = group ?? EffectGroup(of: self)
        group = joined
        start(remaining, of: plan, from: origin, joined, deliver)
    }

    /// Cancels all effects, and prevents further starts.
    func close() { cancelAll(closing: true) }

    /// Cancels all effects.
    func cancelAll() { cancelAll(closing: false) }

    private func cancelAll(closing: Bool) {
        let (running, parts) = contents.withLock { contents in
            if closing { contents.isClosed = true }
            let parts = contents.registrations.values.joined().filter(\.position.isOfPart)
            return (Array(contents.running.values), parts)
        }
        // Outside the lock: cancellation runs the handlers of the effects.
        for effect in running {
            for flag in effect.flags { flag.set() }
            effect.task.cancel()
        }
        // A task that an effect has left behind may run them.
        for part in parts { part.cancel() }
    }

    // MARK: Registering

    private func plan(_ effect: Effect<Action>) -> Plan {
        if case .run(let work) = effect.operation { return Plan(effect: .run(work)) }
        var registrations: [EffectRegistration] = []
        var flags: [CancellationFlag] = []
        /// The registrations around the current part.
        var enclosing: [EffectRegistration] = []
        var order = 0
        let number = contents.withLock { contents in
            contents.lastPlan += 1
            return contents.lastPlan
        }
        func plan(_ effect: Effect<Action>) -> PlannedEffect<Action> {
            switch effect.operation {
            case .none: return .merge([])
            case .send(let action): return .send(action)
            case .run(let work): return .run(work)
            case .merge(let effects): return .merge(effects.map(plan))
            case .concatenate(let effects): return .concatenate(effects.map(plan))
            case .cancellable(let effect, let id, let cancelInFlight):
                order += 1
                let registration = EffectRegistration(id: id, position: EffectPosition(plan: number, order: order))
                registrations.append(registration)
                enclosing.append(registration)
                defer { enclosing.removeLast() }
                return .cancellable(plan(effect), registration, cancelInFlight: cancelInFlight)
            case .cancel(let id):
                order += 1
                return .cancel(id, EffectPosition(plan: number, order: order))
            case .gated(let effect, let gate):
                let flag = CancellationFlag()
                for registration in enclosing { registration.addFlag(flag) }
                flags.append(flag)
                return .gated(plan(effect), gate, flag)
            }
        }
        let planned = plan(effect)
        if !registrations.isEmpty {
            contents.withLock { [registrations] contents in
                for registration in registrations {
                    contents.registrations[registration.id.name, default: []].append(registration)
                }
            }
        }
        return Plan(effect: planned, registrations: registrations, flags: flags)
    }

    private func remove(_ registrations: [EffectRegistration]) {
        guard !registrations.isEmpty else { return }
        contents.withLock { contents in
            for registration in registrations {
                contents.registrations[registration.id.name]?.removeAll { $0 === registration }
                if contents.registrations[registration.id.name]?.isEmpty == true {
                    contents.registrations[registration.id.name] = nil
                }
            }
        }
    }

    func register(_ id: EffectID, cancelInFlight: Bool) -> EffectRegistration {
        // In one step: of two concurrent registrations one is the later, and ends the other.
        let (registration, replaced, isClosed) = contents.withLock { contents in
            contents.lastPlan += 1
            let position = EffectPosition(plan: contents.lastPlan, order: 0)
            let registration = EffectRegistration(id: id, position: position)
            let replaced = cancelInFlight ? contents.reached(by: id, from: position) : []
            contents.registrations[id.name, default: []].append(registration)
            return (registration, replaced, contents.isClosed)
        }
        for other in replaced { other.cancel() }
        if isClosed { registration.cancel() }
        return registration
    }

    func unregister(_ registration: EffectRegistration) { remove([registration]) }

    func cancel(_ id: EffectID) {
        let plan = contents.withLock { contents in
            contents.lastPlan += 1
            return contents.lastPlan
        }
        cancel(id, from: EffectPosition(plan: plan, order: 0))
    }

    private func cancel(_ id: EffectID, from position: EffectPosition) {
        let found = contents.withLock { $0.reached(by: id, from: position) }
        for registration in found { registration.cancel() }
    }

    // MARK: Running

    /// Executes the parts that need not wait, up to the first that does. Returns the rest.
    private func advance(
        _ plan: PlannedEffect<Action>, _ group: EffectGroup?, _ queue: inout [QueuedAction<Action>]
    ) -> PlannedEffect<Action>? {
        switch plan {
        case .run, .waiting: return plan
        case .gated(let part, let gate, let flag):
            switch gate.decide(flag) {
            case .go: return advance(part, group, &queue)
            case .drop: return nil
            case .wait(let wait): return .waiting(part, wait)
            }
        case .send(let action):
            queue.append(QueuedAction(action, group))
            return nil
        case .cancel(let id, let position):
            cancel(id, from: position)
            return nil
        case .merge(let parts):
            var remaining: [PlannedEffect<Action>] = []
            for part in parts {
                if let remainder = advance(part, group, &queue) { remaining.append(remainder) }
            }
            return remaining.count > 1 ? .merge(remaining) : remaining.first
        case .concatenate(let parts):
            for (index, part) in parts.enumerated() {
                guard let remainder = advance(part, group, &queue) else { continue }
                return index + 1 < parts.count ? .concatenate([remainder] + parts[(index + 1)...]) : remainder
            }
            return nil
        case .cancellable(let part, let registration, let cancelInFlight):
            if cancelInFlight { cancel(registration.id, from: registration.position) }
            return advance(part, group, &queue).map { .cancellable($0, registration, cancelInFlight: false) }
        }
    }

    private func start(
        _ effect: PlannedEffect<Action>, of plan: Plan, from origin: Action, _ group: EffectGroup,
        _ deliver: @escaping Deliver<Action>
    ) {
        let (registrations, flags) = (plan.registrations, plan.flags)
        // The task, and whether it must be cancelled at once; nil when nothing was started.
        let started = contents.withLock { contents -> (Task<Void, Never>, Bool)? in
            guard !contents.isClosed else { return nil }
            contents.lastNumber += 1
            let number = contents.lastNumber
            var work = effect
            var registration: EffectRegistration?
            // The outermost cancellable part needs no separate task, because it is the whole effect.
            if case .cancellable(let part, let own, _) = effect { (work, registration) = (part, own) }
            let body: @Sendable () async -> Void = { [work] in
                await EffectGroup.$current.withValue(group) { await self.perform(work, group, deliver) }
                self.ended(number, registrations, group)
            }
            // Under the lock, so that the entry exists before the work can end.
            let task =
                registration.map { $0.start(on: executor, priority: work.priority, body) }
                ?? startTask(on: executor, priority: work.priority, body)
            guard let task else { return nil }
            contents.running[number] = Running(task: task, flags: flags, origin: origin)
            return (task, group.addTask(task, flags, number))
        }
        let isCancelled = started?.1 ?? true
        if isCancelled { for flag in flags { flag.set() } }
        guard let (task, _) = started else { return remove(registrations) }
        if isCancelled { task.cancel() }
    }

    private func ended(_ number: UInt64, _ registrations: [EffectRegistration], _ group: EffectGroup) {
        remove(registrations)
        let ended = contents.withLock { $0.running.removeValue(forKey: number) }
        group.remove(number)
        withExtendedLifetime(ended) {}
        onEnd?()
    }

    private func perform(
        _ effect: PlannedEffect<Action>, _ group: EffectGroup, _ deliver: @escaping Deliver<Action>
    ) async {
        guard !Task.isCancelled else { return }
        switch effect {
        case .send(let action):
            let resume = await deliver(action, EffectLifetime(group, .unknown))
            resume?()
        case .run(let work):
            let lifetime = EffectLifetime(group, work.location)
            await withTaskCancellationHandler {
                await work.run(Send(lifetime, deliver))
            } onCancel: {
                lifetime.cancel()
            }
            lifetime.markEnded()
        case .cancel(let id, let position): cancel(id, from: position)
        case .gated(let part, let gate, let flag):
            switch gate.decide(flag) {
            case .go: await perform(part, group, deliver)
            case .drop: break
            case .wait(let wait): await perform(.waiting(part, wait), group, deliver)
            }
        case .waiting(let part, let wait):
            if await wait() { await perform(part, group, deliver) }
        case .merge(let parts):
            await withDiscardingTaskGroup { tasks in
                for part in parts {
                    tasks.addTask(priority: part.priority) { await self.perform(part, group, deliver) }
                }
            }
        case .concatenate(let parts):
            for part in parts { await perform(part, group, deliver) }
        case .cancellable(let part, let registration, let cancelInFlight):
            if cancelInFlight { cancel(registration.id, from: registration.position) }
            let task = registration.start(on: executor, priority: part.priority) {
                await self.perform(part, group, deliver)
            }
            guard let task else { return }
            await withTaskCancellationHandler {
                await task.value
            } onCancel: {
                task.cancel()
            }
        }
    }
}
