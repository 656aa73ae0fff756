internal import Glibc
internal import Platform
internal import Synchronization

/// Handles the signals that shut down a program. From init until `end()` these signals do not end the process.
package final class ShutdownSignals: Sendable {
    /// The action, the number of signals, and the registrations at the reader.
    private struct State {
        var action: (@Sendable () async -> Void)?
        /// The number of received signals.
        var count = 0
        var listeners: [Int] = []
    }

    private let state = Mutex(State())
    private let secondSignalLoss: String?
    private let log: @Sendable (String) -> Void

    /// - Parameters:
    ///   - secondSignalLoss: the loss that a second signal causes, for the log.
    ///   - log: receives a line at a second signal.
    package init(
        _ signals: Set<ProcessSignal> = [.interrupt, .terminate], secondSignalLoss: String? = nil,
        log: @escaping @Sendable (String) -> Void = { StandardStream.error.write(soon: "trebuchet: \($0)") }
    ) {
        self.secondSignalLoss = secondSignalLoss
        self.log = log
        // The reader retains this object until `end()`.
        listen(for: signals) { self.handle($0) }
    }

    private func listen(for signals: Set<ProcessSignal>, _ action: @escaping @Sendable (ProcessSignal) -> Void) {
        let listener = SignalReader.shared.listen(for: signals, action)
        state.withLock { $0.listeners.append(listener) }
    }

    /// Runs `action` at each SIGHUP.
    package func onHangUp(_ action: @escaping @Sendable () -> Void) { listen(for: [.hangUp]) { _ in action() } }

    /// Runs `action` at the first signal, or immediately if it has been received. The second signal is logged and ends the
    /// process with 128 plus its number, the shell convention: 130 for SIGINT, 143 for SIGTERM.
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

    /// Restores the previous signal handling.
    package func restoreHandlers() {
        let listeners = state.withLock { state in
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners { SignalReader.shared.finish(listener) }
    }

    private func handle(_ signal: ProcessSignal) {
        let (count, action) = state.withLock { state in
            state.count += 1
            return (state.count, state.action)
        }
        guard count == 1 else {
            let status = 128 + signal.number
            log(
                "received a second signal (\(signal)): exiting immediately with \(status)\(secondSignalLoss.map { "; \($0)" } ?? "")"
            )
            exit(status)
        }
        if let action { Task { await action() } }
    }
}
