internal import Relays
internal import Synchronization

/// A first-in, first-out queue of tasks that pass one at a time, which keeps values in order.
///
///     guard await line.enter(task) else { return line.later { … } }
///     …
///     line.leave()
@usableFromInline
final class SerialTaskQueue: Sendable {
    /// An entry of the queue: a suspended task, or work that a task left behind.
    private enum Waiting {
        case task(UnsafeContinuation<Void, Never>, identity: Int)
        /// The work of a task that could not wait, because the other tasks wait for it.
        case work(@Sendable () async -> Void)
    }

    /// The state under the lock.
    private struct Guarded {
        /// The task inside; nil if there is none.
        var owner: Int?
        var waiting = Fifo<Waiting>()
    }

    private let guarded = Mutex(Guarded())
    private let activity: StaticString

    /// Creates a queue.
    ///
    /// - Parameter activity: the activity of a task inside, for deadlock reports: "sends a value of a Subject".
    init(_ activity: StaticString) { self.activity = activity }

    /// Waits for the task's turn. Returns false if the task is already inside and would wait for itself.
    @inlinable
    @inline(__always)
    nonisolated(nonsending) func enter(_ task: Int) async -> Bool { enterNow(task) ? true : await enterLater(task) }

    @usableFromInline
    func enterNow(_ task: Int) -> Bool {
        guarded.withLock { guarded in
            guard guarded.owner == nil else { return false }
            guarded.owner = task
            return true
        }
    }

    @usableFromInline
    func enterLater(_ task: Int) async -> Bool {
        if guarded.withLock({ $0.owner == task }) { return false }
        await withUnsafeContinuation { continuation in
            let isFree = guarded.withLock { guarded in
                if guarded.owner == nil {
                    guarded.owner = task
                    return true
                }
                guarded.waiting.append(.task(continuation, identity: task))
                return false
            }
            if isFree { continuation.resume() }
        }
        return true
    }

    /// Admits the next task.
    @usableFromInline
    func leave() {
        let next = guarded.withLock { guarded in
            // Checked first: the generic code of the removal would be looked up for each value.
            let next = guarded.waiting.isEmpty ? nil : guarded.waiting.popFirst()
            switch next {
            case .task(_, let identity): guarded.owner = identity
            // A number of no task, until the errand's task sets its identity.
            case .work: guarded.owner = 0
            case nil: guarded.owner = nil
            }
            return next
        }
        switch next {
        case .task(let continuation, _): continuation.resume()
        case .work(let work): run(work)
        case nil: break
        }
    }

    /// Handles a task that is already inside: reports the deadlock, which traps in debug builds. If the report
    /// returns, the work runs after the waiting tasks, in a separate task that holds the queue.
    func enqueue(_ work: @escaping @Sendable () async -> Void) {
        Deadlock.report("a task that still delivers a value \(activity) again")
        guarded.withLock { $0.waiting.append(.work(work)) }
    }

    private func run(_ work: @escaping @Sendable () async -> Void) {
        _ = OperatorTask.current.start {
            self.guarded.withLock { $0.owner = CurrentTask.identity }
            await work()
            self.leave()
        }
    }

    /// Emits a value of an operator with several inputs, in turn.
    ///
    /// - Parameter stillWanted: called when it is the value's turn; false drops the value.
    func emit<Value>(
        _ value: Value, from outlet: Outlet<Value>, _ wave: Wave,
        if stillWanted: @escaping @Sendable () -> Bool = { true }
    ) async {
        guard await enter(wave.task) else {
            return enqueue {
                guard stillWanted() else { return }
                let ownWave = Wave(from: outlet)
                await ownWave.run { await outlet.emit(value, ownWave) }
            }
        }
        if stillWanted() { await outlet.emit(value, wave) }
        leave()
    }
}

extension Deadlock {
    static func report(_ problem: String) {
        report(problem, "Add .dispatch() before the subscriber that sends, or remove the cycle.")
    }
}
