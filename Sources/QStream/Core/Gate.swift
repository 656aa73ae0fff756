internal import Relays

/// Open or closed; those who come while it is closed wait until it opens.
final class Gate: Sendable {
    private struct State {
        var isOpen: Bool
        /// How often it was opened: who waits gets through also when it closes again at once.
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
