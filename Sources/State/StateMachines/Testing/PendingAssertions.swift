internal import Relays
import Synchronization

/// The actions that a test has yet to assert.
final class PendingAssertions<State, Action: Sendable> {
    /// A reduced action, with the state before and after it.
    struct Entry {
        let action: Action
        /// The state before and after the action.
        let before, state: State
        /// The changes of the action to shared values.
        let shared: SharedChanges
        /// The number of the action in the order of reduction.
        let number: UInt64
    }

    /// The part that the release of the test store inspects, in any isolation.
    let counts: PendingAssertionCounts<Action>
    private(set) var received: [Entry] = []
    /// The last action that the test sent.
    private(set) var sent: Entry?
    private var isSending = false
    private var lastNumber: UInt64 = 0
    var nextNumber: UInt64 { lastNumber + 1 }
    /// The number of received actions, from the first, that were reported as not received in time.
    private var reportedCount = 0

    init(_ counts: PendingAssertionCounts<Action>) { self.counts = counts }

    /// Marks the next recorded action as sent by the test.
    func beginSending() { isSending = true }

    func recordAction(_ action: Action, from before: State, to state: State, _ shared: SharedChanges) {
        lastNumber += 1
        let entry = Entry(action: action, before: before, state: state, shared: shared, number: lastNumber)
        if isSending {
            isSending = false
            sent = entry
        } else {
            received.append(entry)
            counts.actions.withLock { $0.append(action) }
        }
    }

    /// Returns the received actions that were not reported yet, and marks them as reported.
    func takeUnreported() -> [Action] {
        let actions = received.dropFirst(reportedCount).map(\.action)
        reportedCount = received.count
        counts.actions.withLock { $0.removeAll() }
        return actions
    }

    @discardableResult
    func removeFirst(_ count: Int = 1) -> Entry? {
        guard count > 0 else { return nil }
        let last = received[count - 1]
        received.removeFirst(count)
        let unreportedCount = max(0, count - reportedCount)
        reportedCount -= count - unreportedCount
        counts.actions.withLock { $0.removeFirst(unreportedCount) }
        return last
    }
}

/// The part of the pending assertions that may be read in any isolation.
final class PendingAssertionCounts<Action: Sendable>: Sendable {
    let actions = Mutex<[Action]>([])
    /// The numbers of actions whose effects have not continued after sending them.
    let sending = Mutex<Set<UInt64>>([])
    func isSending(_ number: UInt64) -> Bool { sending.withLock { $0.contains(number) } }
    let exhaustivity = Mutex(Exhaustivity.on)
    /// The current location of the test, at which unasserted actions are reported.
    private let lastLocation: Mutex<CodeLocation>

    init(at location: CodeLocation) { lastLocation = Mutex(location) }

    var location: CodeLocation { lastLocation.withLock { $0 } }
    func setLocation(_ location: CodeLocation) { lastLocation.withLock { $0 = location } }
}
