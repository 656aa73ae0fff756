import Commands
import Synchronization
import Trebuchet

/// A command that runs until SIGINT or SIGTERM. Commands handle these signals only with this type, and with
/// `CommandInterruption`.
///
/// Before the server has answered, a signal ends the process as it ends all other commands: a shell shows status 130 or 143.
final class UntilSignal: Sendable {
    /// The work, and the handling of signals, which begins with the first answer.
    private struct State {
        var work: Task<Void, any Error>?
        var signals: ShutdownSignals?
    }

    private let timeout = CommandTimeout.current
    private let state = Mutex(State())

    private init() {}

    /// Runs `body` until its end, or until the first signal after the first answer, which cancels it. A second signal ends the
    /// process, also after `run` has returned.
    ///
    /// - Parameter body: ends soon after its task is cancelled.
    static func run(_ body: @escaping @Sendable (UntilSignal) async throws -> Void) async throws {
        let end = UntilSignal()
        let work = end.state.withLock { state in
            let work = Task { try await body(end) }
            state.work = work
            return work
        }
        do { try await work.value } catch is CancellationError {}
    }

    /// Stops the timeout, and lets signals end the work in order. Call it when the server has answered, before any output.
    func serverAnswered() {
        timeout?.stop()
        state.withLock { state in
            guard state.signals == nil else { return }
            let signals = ShutdownSignals()
            state.signals = signals
            signals.onFirst { [work = state.work] in work?.cancel() }
        }
    }
}
