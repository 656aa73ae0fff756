internal import Relays
import Synchronization

/// What a test has yet to assert.
final class TestLedger<State, Action: Sendable> {
    struct Entry {
        let action: Action
        /// The state before and after the action.
        let before, state: State
        /// What the action did to values that the state shares with others.
        let shared: SharedChanges
        /// Counts actions in the order in which they were reduced.
        let number: UInt64
    }

    /// What the test store's end has to look at, in whichever isolation.
    let open: OpenEntries<Action>
    private(set) var received: [Entry] = []
    /// The action that the test sent last.
    private(set) var sent: Entry?
    private var isSending = false
    private var lastNumber: UInt64 = 0
    var nextNumber: UInt64 { lastNumber + 1 }
    /// How many of the first received actions were reported as not received in time.
    private var reportedCount = 0

    init(_ open: OpenEntries<Action>) { self.open = open }

    /// The next action to be noted is the test's own.
    func beginSending() { isSending = true }

    func note(_ action: Action, from before: State, to state: State, _ shared: SharedChanges) {
        lastNumber += 1
        let entry = Entry(action: action, before: before, state: state, shared: shared, number: lastNumber)
        if isSending {
            isSending = false
            sent = entry
        } else {
            received.append(entry)
            open.actions.withLock { $0.append(action) }
        }
    }

    /// The received actions that were not reported yet; they are from now on.
    func takeUnreported() -> [Action] {
        let actions = received.dropFirst(reportedCount).map(\.action)
        reportedCount = received.count
        open.actions.withLock { $0.removeAll() }
        return actions
    }

    @discardableResult
    func removeFirst(_ count: Int = 1) -> Entry? {
        guard count > 0 else { return nil }
        let last = received[count - 1]
        received.removeFirst(count)
        let unreportedCount = max(0, count - reportedCount)
        reportedCount -= count - unreportedCount
        open.actions.withLock { $0.removeFirst(unreportedCount) }
        return last
    }
}

/// The part of a ledger that may be read in any isolation.
final class OpenEntries<Action: Sendable>: Sendable {
    let actions = Mutex<[Action]>([])
    /// The numbers of those whose effects have not gone on yet since they sent them.
    let sending = Mutex<Set<UInt64>>([])
    func isSending(_ number: UInt64) -> Bool { sending.withLock { $0.contains(number) } }
    let exhaustivity = Mutex(Exhaustivity.on)
    /// Where the test is: what it has left open is reported there.
    private let place: Mutex<CodeLocation>

    init(at location: CodeLocation) { place = Mutex(location) }

    var location: CodeLocation { place.withLock { $0 } }
    func reached(_ location: CodeLocation) { place.withLock { $0 = location } }
}
