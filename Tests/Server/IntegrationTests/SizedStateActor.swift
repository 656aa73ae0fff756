import CAllocationCount
import TestSupport
import Trebuchet

/// A state of any size, and calls of any duration.
@Trebuchet
distributed actor SizedStateActor {
    struct State: Codable, Sendable {
        var count = 0
        var items: [Int] = []
        var padding = ""
    }

    @StreamedState var state: State = State()
    private let journal: Journal

    init(journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func fill(items: Int, padding: Int) {
        state = State(items: Array(0..<items), padding: String(repeating: "x", count: padding))
    }
    distributed func add() -> Int {
        state.count += 1
        return state.count
    }
    /// The number of this thread's allocations so far.
    distributed func allocations() -> Int { allocation_count() }
    distributed func same(_ number: Int) -> Int { number }
    distributed func length(of text: String) -> Int { text.utf8.count }
    distributed func addLater() async -> Int {
        await Task.yield()
        return add()
    }
    /// Replaces the padding: no difference is smaller than the value.
    distributed func churn() -> Int {
        state.padding = String(repeating: state.count % 2 == 0 ? "y" : "z", count: state.padding.utf8.count)
        return add()
    }
    /// Counts, and responds at the test's signal.
    @Idempotent
    distributed func countOnce(_ name: String) async throws -> Int {
        journal.record("\(name) began")
        await journal.wait(for: "\(name) go")
        state.count += 1
        journal.record("\(name) \(Task.isCancelled ? "was cancelled" : "went on")")
        return state.count
    }
    @Idempotent
    distributed func addOnce() -> Int { add() }
    distributed func hold(_ name: String) async -> Int {
        journal.record("\(name) began")
        await journal.wait(for: "\(name) go")
        journal.record("\(name) \(Task.isCancelled ? "was cancelled" : "went on")")
        return state.count
    }
}
