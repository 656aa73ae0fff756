import Synchronization

/// Runs the effects of one store or host, and ends them when it goes.
///
/// It is safe to use from any isolation, since a host may be released anywhere and effects end anywhere.
final class EffectTasks<Action: Sendable>: EffectRegistry {
    typealias Deliver = @Sendable (Action) async -> Void

    private struct Running: Sendable {
        let task: Task<Void, Never>
        let origin: Action
    }

    private struct Contents: Sendable {
        var running: [UInt64: Running] = [:]
        var registrations: [AnyID: [EffectRegistration]] = [:]
        var lastNumber: UInt64 = 0
        var lastPlan: UInt64 = 0
        var isClosed = false
    }

    private let contents = Mutex(Contents())
    /// Called after an effect has ended.
    private let onEnd: (@Sendable () -> Void)?

    init(onEnd: (@Sendable () -> Void)? = nil) { self.onEnd = onEnd }

    /// The actions whose effects have not ended, in the order in which these were started.
    var origins: [Action] {
        contents.withLock { $0.running.sorted { $0.key < $1.key }.map(\.value.origin) }
    }

    /// Cancellable parts of effects that have not ended.
    var registrationCount: Int { contents.withLock { $0.registrations.values.reduce(0) { $0 + $1.count } } }

    /// Does what needs no waiting at once, and starts the rest in a task.
    ///
    /// - Parameters:
    ///   - queue: gets the actions of `.send`.
    ///   - group: the tasks of the same `send`; made when the first one starts.
    func begin(
        _ effect: Effect<Action>, from origin: Action, queue: inout [Action], group: inout EffectGroup?,
        deliver: @escaping Deliver
    ) {
        let (plan, registrations) = plan(effect)
        guard let rest = advance(plan, &queue) else { return remove(registrations) }
        let joined = group ?? currentGroup ?? EffectGroup(of: self)
        group = joined
        start(rest, from: origin, registrations, joined, deliver)
    }

    /// Cancels all effects, and starts no more.
    func close() { cancelAll(closing: true) }

    /// Cancels all effects.
    func cancelAll() { cancelAll(closing: false) }

    private var currentGroup: EffectGroup? {
        EffectGroup.current.flatMap { $0.owner == ObjectIdentifier(self) ? $0 : nil }
    }

    private func cancelAll(closing: Bool) {
        let tasks = contents.withLock { contents in
            if closing { contents.isClosed = true }
            return contents.running.values.map(\.task)
        }
        // Outside of the lock: cancelling runs the handlers of the effects.
        for task in tasks { task.cancel() }
    }

    // MARK: Registering

    private func plan(_ effect: Effect<Action>) -> (PlannedEffect<Action>, [EffectRegistration]) {
        if case .run(let work) = effect.operation { return (.run(work), []) }
        var registrations: [EffectRegistration] = []
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
                return .cancellable(plan(effect), registration, cancelInFlight: cancelInFlight)
            case .cancel(let id):
                order += 1
                return .cancel(id, EffectPosition(plan: number, order: order))
            case .gated(let effect, let gate): return .gated(plan(effect), gate)
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
        return (planned, registrations)
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

    func register(_ id: EffectID, cancel: @escaping @Sendable () -> Void) -> EffectRegistration {
        contents.withLock { contents in
            contents.lastPlan += 1
            let position = EffectPosition(plan: contents.lastPlan, order: 0)
            let registration = EffectRegistration(id: id, position: position, cancel: cancel)
            contents.registrations[id.name, default: []].append(registration)
            return registration
        }
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
        let found = contents.withLock { contents in
            contents.registrations[id.name, default: []].filter {
                $0.id.isReached(by: id) && position.reaches($0.position)
            }
        }
        for registration in found { registration.cancel() }
    }

    // MARK: Running

    /// Does the parts that need no waiting, up to the first that does; returns what is left.
    private func advance(_ plan: PlannedEffect<Action>, _ queue: inout [Action]) -> PlannedEffect<Action>? {
        switch plan {
        case .run, .waiting: return plan
        case .gated(let part, let gate):
            switch gate.decide() {
            case .go: return advance(part, &queue)
            case .drop: return nil
            case .wait(let wait): return .waiting(part, wait)
            }
        case .send(let action):
            queue.append(action)
            return nil
        case .cancel(let id, let position):
            cancel(id, from: position)
            return nil
        case .merge(let parts):
            var rest: [PlannedEffect<Action>] = []
            for part in parts {
                if let left = advance(part, &queue) { rest.append(left) }
            }
            return rest.count > 1 ? .merge(rest) : rest.first
        case .concatenate(let parts):
            for (index, part) in parts.enumerated() {
                guard let left = advance(part, &queue) else { continue }
                return index + 1 < parts.count ? .concatenate([left] + parts[(index + 1)...]) : left
            }
            return nil
        case .cancellable(let part, let registration, let cancelInFlight):
            if cancelInFlight { cancel(registration.id, from: registration.position) }
            return advance(part, &queue).map { .cancellable($0, registration, cancelInFlight: false) }
        }
    }

    private func start(
        _ effect: PlannedEffect<Action>, from origin: Action, _ registrations: [EffectRegistration],
        _ group: EffectGroup, _ deliver: @escaping Deliver
    ) {
        // The task, and whether it has to be cancelled at once; nil when nothing was started.
        let started = contents.withLock { contents -> (Task<Void, Never>, Bool)? in
            guard !contents.isClosed else { return nil }
            contents.lastNumber += 1
            let number = contents.lastNumber
            var work = effect
            var registration: EffectRegistration?
            // The outermost cancellable part needs no task of its own: it is all there is.
            if case .cancellable(let part, let own, _) = effect { (work, registration) = (part, own) }
            let body: @Sendable () async -> Void = { [work] in
                await EffectGroup.$current.withValue(group) { await self.perform(work, deliver) }
                self.ended(number, registrations, group)
            }
            // Under the lock, so that the entry is there before the work can end.
            let task =
                registration.map { $0.start(priority: work.priority, body) }
                ?? Task(priority: work.priority) { await body() }
            guard let task else { return nil }
            contents.running[number] = Running(task: task, origin: origin)
            return (task, group.add(task, number))
        }
        guard let (task, isCancelled) = started else { return remove(registrations) }
        if isCancelled { task.cancel() }
    }

    private func ended(_ number: UInt64, _ registrations: [EffectRegistration], _ group: EffectGroup) {
        remove(registrations)
        let ended = contents.withLock { $0.running.removeValue(forKey: number) }
        group.remove(number)
        withExtendedLifetime(ended) {}
        onEnd?()
    }

    private func perform(_ effect: PlannedEffect<Action>, _ deliver: @escaping Deliver) async {
        guard !Task.isCancelled else { return }
        switch effect {
        case .send(let action): await deliver(action)
        case .run(let work): await work.run(Send(deliver))
        case .cancel(let id, let position): cancel(id, from: position)
        case .gated(let part, let gate):
            switch gate.decide() {
            case .go: await perform(part, deliver)
            case .drop: break
            case .wait(let wait): await perform(.waiting(part, wait), deliver)
            }
        case .waiting(let part, let wait):
            if await wait() { await perform(part, deliver) }
        case .merge(let parts):
            await withDiscardingTaskGroup { group in
                for part in parts {
                    group.addTask(priority: part.priority) { await self.perform(part, deliver) }
                }
            }
        case .concatenate(let parts):
            for part in parts { await perform(part, deliver) }
        case .cancellable(let part, let registration, let cancelInFlight):
            if cancelInFlight { cancel(registration.id, from: registration.position) }
            let task = registration.start(priority: part.priority) { await self.perform(part, deliver) }
            guard let task else { return }
            await withTaskCancellationHandler {
                await task.value
            } onCancel: {
                task.cancel()
            }
        }
    }
}
