internal import Relays
internal import Synchronization

/// Tasks that pass one at a time, in the order in which they came: what keeps values in order.
///
///     guard await line.enter(task) else { return line.later { … } }
///     …
///     line.leave()
@usableFromInline
final class Line: Sendable {
    private enum Waiting {
        case task(UnsafeContinuation<Void, Never>, identity: Int)
        /// What a task would have done that could not wait, because it is the one that everybody waits for.
        case errand(@Sendable () async -> Void)
    }

    private struct Guarded {
        /// The task inside; nil when nobody is.
        var owner: Int?
        var waiting = Fifo<Waiting>()
    }

    private let guarded = Mutex(Guarded())
    private let what: StaticString

    /// - Parameter what: what a task does inside, for the report of a deadlock: "sends a value of a Subject".
    init(_ what: StaticString) { self.what = what }

    /// Waits for the task's turn. False when the task is inside already: it would wait for itself.
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

    /// Lets the next one in.
    @usableFromInline
    func leave() {
        let next = guarded.withLock { guarded in
            // Asked first: what is generic in removing would be looked up for each value.
            let next = guarded.waiting.isEmpty ? nil : guarded.waiting.popFirst()
            switch next {
            case .task(_, let identity): guarded.owner = identity
            // A number that no task has, until the errand's task says its own.
            case .errand: guarded.owner = 0
            case nil: guarded.owner = nil
            }
            return next
        }
        switch next {
        case .task(let continuation, _): continuation.resume()
        case .errand(let errand): run(errand)
        case nil: break
        }
    }

    /// For a task that is inside already: reports the deadlock (in debug builds that traps). Where the report returns,
    /// the errand is run after those that wait, in a task of its own that has the line to itself.
    func later(_ errand: @escaping @Sendable () async -> Void) {
        Deadlock.report("a task that still delivers a value \(what) again")
        guarded.withLock { $0.waiting.append(.errand(errand)) }
    }

    private func run(_ errand: @escaping @Sendable () async -> Void) {
        _ = Worker.current.start {
            self.guarded.withLock { $0.owner = CurrentTask.identity }
            await errand()
            self.leave()
        }
    }

    /// Emits a value of an operator with several inputs, in its turn.
    ///
    /// - Parameter stillWanted: asked when it is the value's turn.
    func emit<Value>(
        _ value: Value, from outlet: Outlet<Value>, _ wave: Wave,
        if stillWanted: @escaping @Sendable () -> Bool = { true }
    ) async {
        guard await enter(wave.task) else {
            return later {
                guard stillWanted() else { return }
                let own = Wave(from: outlet)
                await own.run { await outlet.emit(value, own) }
            }
        }
        if stillWanted() { await outlet.emit(value, wave) }
        leave()
    }
}

extension Deadlock {
    static func report(_ what: String) {
        report(what, "Put .dispatch() in front of the subscriber that sends, or break the circle.")
    }
}
