internal import Relays

/// A gate that is open or closed. Tasks wait at a closed gate until it opens.
final class Gate: Sendable {
    /// The state under the lock of the monitor.
    private struct State {
        var isOpen: Bool
        /// The number of openings: a waiting task passes even if the gate closes again at once.
        var openings = 0
    }

    private let state: Monitor<State>

    init(isOpen: Bool = false) { state = Monitor(State(isOpen: isOpen)) }

    func close() { state.withLock { $0.isOpen = false } }

    func open() {
        let (_, woken) = state.change { state in
            state.isOpen = true
            state.openings += 1
        }
        woken.resume()
    }

    /// Returns when the gate is open, or the task is cancelled.
    func wait() async {
        let before = state.withLock { $0.openings }
        await state.wait { $0.isOpen || $0.openings > before ? () : nil }
    }
}
