internal import Glibc
internal import Synchronization

/// The signals that are to end a program in order, as something to wait for. From the moment it is made they do not end the
/// process any more, until `end()`.
package final class ShutdownSignals: Sendable {
    private struct State {
        var action: (@Sendable () async -> Void)?
        /// How many have come.
        var count = 0
        var listeners: [Int] = []
    }

    private let state = Mutex(State())
    private let givingUp: String?
    private let log: @Sendable (String) -> Void

    /// - Parameters:
    ///   - givingUp: what is lost when a second signal comes, for the log.
    ///   - log: told of that.
    package init(
        _ signals: Set<ProcessSignal> = [.interrupt, .terminate], givingUp: String? = nil,
        log: @escaping @Sendable (String) -> Void = ServerLog.standardError
    ) {
        self.givingUp = givingUp
        self.log = log
        // Held by the reader until `end()`.
        listen(for: signals) { self.came($0) }
    }

    private func listen(for signals: Set<ProcessSignal>, _ action: @escaping @Sendable (ProcessSignal) -> Void) {
        let listener = SignalReader.shared.listen(for: signals, action)
        state.withLock { $0.listeners.append(listener) }
    }

    /// Runs `action` at each SIGHUP.
    package func onHangUp(_ action: @escaping @Sendable () -> Void) { listen(for: [.hangUp]) { _ in action() } }

    /// Runs `action` at the first signal, at once when it has come already; the second is logged and ends the process with 128
    /// and its number, as a shell tells of it: 130 for SIGINT, 143 for SIGTERM.
    package func onFirst(_ action: @escaping @Sendable () async -> Void) {
        let isDue = state.withLock { state in
            state.action = action
            return state.count > 0
        }
        if isDue { Task { await action() } }
    }

    /// Waits for the first signal.
    package func first() async {
        await withCheckedContinuation { continuation in onFirst { continuation.resume() } }
    }

    /// Signals do again what they did before.
    package func end() {
        let listeners = state.withLock { state in
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners { SignalReader.shared.end(listener) }
    }

    private func came(_ signal: ProcessSignal) {
        let (count, action) = state.withLock { state in
            state.count += 1
            return (state.count, state.action)
        }
        guard count == 1 else {
            let status = 128 + signal.number
            log("a second signal came (\(signal)): ending at once with \(status)\(givingUp.map { "; \($0)" } ?? "")")
            exit(status)
        }
        if let action { Task { await action() } }
    }
}
