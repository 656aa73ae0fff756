/// What is remembered of a client's mutations, so that none is done twice.
///
/// A client numbers its mutations and sends them in order, at most as many at once as are remembered here, and the next only
/// when it has their outcomes: so whatever it repeats is in the window.
struct MutationWindow: Codable, Sendable, Equatable {
    /// The newest number.
    private(set) var last = 0
    private var outcomes: [MutationOutcome] = []

    /// What became of a mutation that came before; nil for a new one, which may leave out numbers.
    func outcome(of number: Int) -> MutationOutcome? {
        guard number <= last else { return nil }
        return outcomes.first { $0.number == number }
            ?? MutationOutcome(number: number, revision: 0, error: .outdated)
    }

    mutating func remember(_ outcome: MutationOutcome) {
        last = max(last, outcome.number)
        outcomes.append(outcome)
        if outcomes.count > CollectionLimits.mutationsPerCall { outcomes.removeFirst() }
    }

    /// The last write that the client made.
    var revision: Int { outcomes.last { $0.error == nil }?.revision ?? 0 }
}
