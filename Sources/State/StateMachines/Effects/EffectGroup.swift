import Synchronization

/// An action that is reduced after the current one.
struct QueuedAction<Action> {
    let action: Action
    /// The group of its effects; nil for the group of the action that is being reduced.
    let group: EffectGroup?

    init(_ action: Action, _ group: EffectGroup?) {
        self.action = action
        self.group = group
        if let group, group.isDeferred { group.countWaitingAction() }
    }

    func markReduced() {
        if let group, group.isDeferred { group.countReducedAction() }
    }
}

/// The tasks that come from one `send`: those of its effects, and of the actions that these send.
final class EffectGroup: Sendable {
    /// The group of the effect that runs in the current task.
    @TaskLocal static var current: EffectGroup?

    /// A task of the group, with the marks that its cancellation sets.
    private struct Member: Sendable {
        let task: Task<Void, Never>
        let flags: [CancellationFlag]
    }

    /// The members of a group. Usually there is only one, which needs no table.
    private struct Members {
        private var only: (number: UInt64, member: Member)?
        private var others: [UInt64: Member] = [:]

        var any: Member? { only?.member ?? others.first?.value }
        var all: [Member] { (only.map { [$0.member] } ?? []) + others.values }

        mutating func insert(_ member: Member, _ number: UInt64) {
            if only == nil { only = (number, member) } else { others[number] = member }
        }

        mutating func remove(_ number: UInt64) -> Member? {
            guard only?.number == number else { return others.isEmpty ? nil : others.removeValue(forKey: number) }
            defer { only = nil }
            return only?.member
        }
    }

    /// The tasks and the waiting actions, under the lock.
    private struct Contents {
        var members = Members()
        var isCancelled = false
        /// The number of actions that wait to be reduced.
        var waitingActions = 0
        var sleepers: [CheckedContinuation<Void, Never>] = []
    }

    /// The effects of the host, whose identity distinguishes the groups of different hosts.
    let registry: any EffectRegistry
    var owner: ObjectIdentifier { ObjectIdentifier(registry) }
    /// True if a caller may wait for the group before its action has been reduced.
    let isDeferred: Bool
    private let contents = Mutex(Contents())

    init(of registry: any EffectRegistry, isDeferred: Bool = false) {
        self.registry = registry
        self.isDeferred = isDeferred
    }

    func countWaitingAction() { contents.withLock { $0.waitingActions += 1 } }

    func countReducedAction() {
        let sleepers = contents.withLock { contents in
            contents.waitingActions -= 1
            guard contents.waitingActions == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { contents.sleepers = [] }
            return contents.sleepers
        }
        for sleeper in sleepers { sleeper.resume() }
    }

    /// Adds a task.
    ///
    /// - Returns: whether the group is cancelled. The caller then cancels the task without holding a lock.
    func addTask(_ task: Task<Void, Never>, _ flags: [CancellationFlag], _ number: UInt64) -> Bool {
        contents.withLock { contents in
            contents.members.insert(Member(task: task, flags: flags), number)
            return contents.isCancelled
        }
    }

    func remove(_ number: UInt64) {
        let removed = contents.withLock { $0.members.remove(number) }
        withExtendedLifetime(removed) {}
    }

    func cancel() {
        let members = contents.withLock { contents in
            contents.isCancelled = true
            return contents.members.all
        }
        for member in members {
            for flag in member.flags { flag.set() }
            member.task.cancel()
        }
    }

    /// Returns when no task is left. Follow-up tasks are added before a task ends, so none is missed.
    func finish() async {
        while true {
            let (task, isWaiting) = contents.withLock { ($0.members.any?.task, $0.waitingActions > 0) }
            if let task {
                await task.value
            } else if isWaiting {
                await reducing()
            } else {
                return
            }
        }
    }

    /// Waits until no action waits.
    private func reducing() async {
        await withCheckedContinuation { continuation in
            let sleeps = contents.withLock { contents in
                if contents.waitingActions > 0 { contents.sleepers.append(continuation) }
                return contents.waitingActions > 0
            }
            if !sleeps { continuation.resume() }
        }
    }
}
