internal import Glibc
internal import Networking
internal import Platform
internal import Synchronization

/// Tells of signals to the process, one reader for all who listen.
///
/// The handlers write into a pipe (all that a handler may do); a thread reads from it. A signal that nobody listens for any
/// more is handled as it was before.
final class SignalReader: Sendable {
    static let shared = SignalReader()

    private struct Listener {
        let signals: Set<ProcessSignal>
        let action: @Sendable (ProcessSignal) -> Void
    }

    private struct State {
        var listeners: [Int: Listener] = [:]
        var lastNumber = 0
        /// What was done at a signal before anybody listened.
        var former: [ProcessSignal: sigaction] = [:]
        var isReading = false
    }

    /// Made before handlers are set, and never closed.
    private static let pipeEnds: (read: Int32, write: Int32) = {
        guard let pipe = Pipe() else { preconditionFailure("pipe: \(String(cString: strerror(errno)))") }
        // A handler does not wait for anybody.
        _ = fcntl(pipe.writeEnd, F_SETFL, O_NONBLOCK)
        return (pipe.readEnd, pipe.writeEnd)
    }()

    private let state = Mutex(State())

    /// - Returns: what to end it with.
    func listen(
        for signals: Set<ProcessSignal>, _ action: @escaping @Sendable (ProcessSignal) -> Void
    ) -> Int {
        state.withLock { state in
            if !state.isReading {
                state.isReading = true
                _ = Self.pipeEnds
                startThread { self.read() }
            }
            for signal in signals where state.former[signal] == nil { state.former[signal] = Self.handle(signal) }
            state.lastNumber += 1
            state.listeners[state.lastNumber] = Listener(signals: signals, action: action)
            return state.lastNumber
        }
    }

    func end(_ number: Int) {
        state.withLock { state in
            guard let ended = state.listeners.removeValue(forKey: number) else { return }
            for signal in ended.signals where !state.listeners.values.contains(where: { $0.signals.contains(signal) }) {
                guard var former = state.former.removeValue(forKey: signal) else { continue }
                sigaction(signal.number, &former, nil)
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
        var former = sigaction()
        sigaction(signal.number, &action, &former)
        return former
    }

    private func read() {
        while true {
            var byte: UInt8 = 0
            guard Glibc.read(Self.pipeEnds.read, &byte, 1) == 1 else { continue }
            let signal = ProcessSignal(Int32(byte))
            let told = state.withLock { $0.listeners.values.filter { $0.signals.contains(signal) } }
            for listener in told { listener.action(signal) }
        }
    }
}
