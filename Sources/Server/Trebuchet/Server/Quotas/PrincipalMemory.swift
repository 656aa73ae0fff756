internal import Platform
internal import Bytes
internal import Synchronization

/// The reservations of one connection in the quotas of its principal.
final class PrincipalMemoryReservation: Sendable {
    let memory: PrincipalMemory.ConnectionUsage
    /// The reservation in the number of the principal's connections.
    let connectionReservation: QuotaReservation?

    init(_ memory: PrincipalMemory.ConnectionUsage, _ reservation: QuotaReservation?) {
        self.memory = memory
        self.connectionReservation = reservation
    }
}

/// The buffered memory of each principal with connections.
final class PrincipalMemory: Sendable {
    /// The use of one connection. The budget of a principal exists while at least one part does.
    final class ConnectionUsage: Sendable {
        let budget: MemoryBudget
        let id: String
        private let memory: PrincipalMemory

        fileprivate init(_ id: String, _ budget: MemoryBudget, _ memory: PrincipalMemory) {
            self.id = id
            self.budget = budget
            self.memory = memory
        }

        deinit { memory.release(PrincipalName(id)) }
    }

    private let limit: Int
    private let budgets = Mutex<[PrincipalName: (budget: MemoryBudget, parts: Int)]>([:])

    init(limit: Int) { self.limit = limit }

    func usage(of id: String) -> ConnectionUsage {
        let name = PrincipalName(id)
        let budget = budgets.withLock { budgets in
            let entry = budgets[name] ?? (MemoryBudget(limit: limit), 0)
            budgets[name] = (entry.budget, entry.parts + 1)
            return entry.budget
        }
        return ConnectionUsage(id, budget, self)
    }

    private func release(_ name: PrincipalName) {
        budgets.withLock { budgets in
            guard let entry = budgets[name] else { return }
            budgets[name] = entry.parts > 1 ? (entry.budget, entry.parts - 1) : nil
        }
    }
}
