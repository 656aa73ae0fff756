internal import Glibc
internal import Platform
internal import Synchronization

/// The timeout of a command that waits for a server. When it expires, the process prints the reason and exits with status 1.
///
/// A command starts the timeout before it waits for an answer and stops it when the answer has come.
package final class CommandTimeout: Sendable {
    package static let option = OptionSpec("--timeout", "SECONDS", "maximum time for a response of the server (10)")
    /// The timeout of the running command; nil for a command without `--timeout`.
    @TaskLocal package static var current: CommandTimeout?

    /// The awaited event and its start, under the lock.
    private struct State {
        var seconds: Double
        var awaited = "answer"
        /// Nil while the timeout is stopped.
        var start: UInt64?
        var hasThread = false
        /// True while the thread waits for a start.
        var isThreadIdle = false

        var deadline: UInt64? { start.map { $0 &+ UInt64(seconds * 1e9) } }
    }

    private let command: String
    private let state: Mutex<State>
    private let started = ThreadSemaphore()

    /// Returns nil for a command without `--timeout`.
    package init?(_ arguments: ParsedArguments, of command: CommandSpec) throws(UsageError) {
        guard command.options.contains(where: { $0.name == Self.option.name }) else { return nil }
        self.command = command.name
        let seconds = try arguments.double(Self.option.name, in: 0.001...86_400)
        state = Mutex(State(seconds: seconds ?? 10))
    }

    /// Sets the length of this and later waits. Default: that of the option, 10 seconds without it.
    package func limit(seconds: Double) { change { $0.seconds = seconds } }

    /// Starts the timeout.
    ///
    /// - Parameter awaited: the awaited event, such as `connection to 127.0.0.1:8080`.
    package func start(awaiting awaited: String) {
        change { state in
            state.awaited = awaited
            state.start = MonotonicClock.now
        }
    }

    /// Stops the timeout; the command may take any time.
    package func stop() { change { $0.start = nil } }

    /// Starts the timeout again, for the same awaited event.
    package func restart() { change { $0.start = MonotonicClock.now } }

    private func change(_ body: (inout State) -> Void) {
        let (needsThread, needsSignal) = state.withLock { state in
            body(&state)
            guard state.start != nil else { return (false, false) }
            defer { (state.hasThread, state.isThreadIdle) = (true, false) }
            return (!state.hasThread, state.isThreadIdle)
        }
        if needsSignal { started.signal() }
        // A thread instead of a task: the timeout also ends a command that blocks the threads of the pool.
        if needsThread { startThread(named: "timeout") { self.run() } }
    }

    private func run() {
        while true {
            let state = state.withLock { state in
                state.isThreadIdle = state.start == nil
                return state
            }
            let now = MonotonicClock.now
            switch state.deadline {
            case nil: started.wait()
            case let deadline? where now < deadline:
                started.wait(within: .nanoseconds(Int64(clamping: deadline - now)))
            default:
                let time = state.seconds == state.seconds.rounded() ? "\(Int(state.seconds))" : "\(state.seconds)"
                Console.error(
                    "trebuchet \(command): no \(state.awaited) within \(time) s; \(Self.option.name) sets the maximum time"
                )
                exit(1)
            }
        }
    }
}
