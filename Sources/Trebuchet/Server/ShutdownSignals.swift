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

    package init(_ signals: Set<ProcessSignal> = [.interrupt, .terminate]) {
        // Held by the reader until `end()`.
        listen(for: signals) { _ in self.came() }
    }

    private func listen(for signals: Set<ProcessSignal>, _ action: @escaping @Sendable (ProcessSignal) -> Void) {
        let listener = SignalReader.shared.listen(for: signals, action)
        state.withLock { $0.listeners.append(listener) }
    }

    /// Runs `action` at each SIGHUP.
    package func onHangUp(_ action: @escaping @Sendable () -> Void) { listen(for: [.hangUp]) { _ in action() } }

    /// Runs `action` at the first signal, at once when it has come already; the second ends the process with 130.
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

    private func came() {
        let (count, action) = state.withLock { state in
            state.count += 1
            return (state.count, state.action)
        }
        guard count == 1 else { exit(130) }
        if let action { Task { await action() } }
    }
}
