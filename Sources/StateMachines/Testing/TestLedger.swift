import Synchronization

/// What a test has yet to assert.
final class TestLedger<State, Action: Sendable> {
    struct Entry {
        let action: Action
        /// The state after the action.
        let state: State
    }

    /// What the test store's end has to look at, wherever that comes.
    let open: OpenEntries<Action>
    private(set) var received: [Entry] = []
    /// The state after the action that the test sent.
    private(set) var sent: State?
    private var isSending = false

    init(_ open: OpenEntries<Action>) { self.open = open }

    /// The next action to be noted is the test's own.
    func beginSending() { isSending = true }

    func note(_ action: Action, _ state: State) {
        if isSending {
            isSending = false
            sent = state
        } else {
            received.append(Entry(action: action, state: state))
            open.actions.withLock { $0.append(action) }
        }
    }

    @discardableResult
    func removeFirst(_ count: Int = 1) -> Entry? {
        guard count > 0 else { return nil }
        let last = received[count - 1]
        received.removeFirst(count)
        open.actions.withLock { $0.removeFirst(count) }
        return last
    }
}

/// The part of a ledger that may be read in any isolation.
final class OpenEntries<Action: Sendable>: Sendable {
    let actions = Mutex<[Action]>([])
    let exhaustivity = Mutex(Exhaustivity.on)
}
