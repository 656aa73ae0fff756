internal import Glibc
internal import Networking
internal import Platform
internal import Synchronization

/// Delivers signals to all listeners in the process.
///
/// The handlers write into a pipe, which is async-signal-safe, and a thread reads from it. When the last listener of a signal
/// has ended, its previous handler is restored.
final class SignalReader: Sendable {
    static let shared = SignalReader()

    /// The signals and the action of a listener.
    private struct Listener {
        let signals: Set<ProcessSignal>
        let action: @Sendable (ProcessSignal) -> Void
    }

    /// The listeners and the previous handlers.
    private struct State {
        var listeners: [Int: Listener] = [:]
        var lastNumber = 0
        /// The handlers before the first listener.
        var previous: [ProcessSignal: sigaction] = [:]
        var isReading = false
    }

    /// Created before handlers are installed, and never closed.
    private static let pipeEnds: (read: Int32, write: Int32) = {
        guard let pipe = Pipe() else { preconditionFailure("pipe: \(String(cString: strerror(errno)))") }
        // A signal handler must not block.
        _ = fcntl(pipe.writeEnd, F_SETFL, O_NONBLOCK)
        return (pipe.readEnd, pipe.writeEnd)
    }()

    private let state = Mutex(State())

    /// Registers a listener.
    ///
    /// - Returns: the number for `finish(_:)`.
    func listen(
        for signals: Set<ProcessSignal>, _ action: @escaping @Sendable (ProcessSignal) -> Void
    ) -> Int {
        state.withLock { state in
            if !state.isReading {
                state.isReading = true
                _ = Self.pipeEnds
                startThread { self.read() }
            }
            for signal in signals where state.previous[signal] == nil { state.previous[signal] = Self.handle(signal) }
            state.lastNumber += 1
            state.listeners[state.lastNumber] = Listener(signals: signals, action: action)
            return state.lastNumber
        }
    }

    func finish(_ number: Int) {
        state.withLock { state in
            guard let ended = state.listeners.removeValue(forKey: number) else { return }
            for signal in ended.signals where !state.listeners.values.contains(where: { $0.signals.contains(signal) }) {
                guard var previous = state.previous.removeValue(forKey: signal) else { continue }
                sigaction(signal.number, &previous, nil)
            }
        }
    }

    private static func handle(_ signal: ProcessSignal) -> sigaction {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { number in
            let error = errno
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(SignalReader.pipeEnds.write, &byte, 1)
            errno = error
        }
        action.sa_flags = SA_RESTART
        var previous = sigaction()
        sigaction(signal.number, &action, &previous)
        return previous
    }

    private func read() {
        while true {
            var byte: UInt8 = 0
            guard Glibc.read(Self.pipeEnds.read, &byte, 1) == 1 else { continue }
            let signal = ProcessSignal(Int32(byte))
            let notified = state.withLock { $0.listeners.values.filter { $0.signals.contains(signal) } }
            for listener in notified { listener.action(signal) }
        }
    }
}
