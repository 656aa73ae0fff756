internal import Platform
internal import Bytes
internal import Synchronization

/// What one connection has of its principal's shares.
final class PrincipalSeat: Sendable {
    let memory: PrincipalMemory.Part
    /// Among the connections of the principal.
    let stake: Stake?

    init(_ memory: PrincipalMemory.Part, _ stake: Stake?) {
        self.memory = memory
        self.stake = stake
    }
}

/// What is held for the connections of each principal that has some.
final class PrincipalMemory: Sendable {
    /// The part of one connection in it: the principal is known as long as one is there.
    final class Part: Sendable {
        let budget: MemoryBudget
        let id: String
        private let memory: PrincipalMemory

        fileprivate init(_ id: String, _ budget: MemoryBudget, _ memory: PrincipalMemory) {
            self.id = id
            self.budget = budget
            self.memory = memory
        }

        deinit { memory.leave(PrincipalName(id)) }
    }

    private let limit: Int
    private let budgets = Mutex<[PrincipalName: (budget: MemoryBudget, parts: Int)]>([:])

    init(limit: Int) { self.limit = limit }

    func part(of id: String) -> Part {
        let name = PrincipalName(id)
        let budget = budgets.withLock { budgets in
            let entry = budgets[name] ?? (MemoryBudget(limit: limit), 0)
            budgets[name] = (entry.budget, entry.parts + 1)
            return entry.budget
        }
        return Part(id, budget, self)
    }

    private func leave(_ name: PrincipalName) {
        budgets.withLock { budgets in
            guard let entry = budgets[name] else { return }
            budgets[name] = entry.parts > 1 ? (entry.budget, entry.parts - 1) : nil
        }
    }
}
