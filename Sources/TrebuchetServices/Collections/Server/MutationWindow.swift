/// What is remembered of a client's mutations, so that none is done twice.
///
/// A client numbers its mutations and sends them in order, at most as many at once as are remembered here, and the next only
/// when it has their outcomes: so whatever it repeats is in the window.
struct MutationWindow: Codable, Sendable, Equatable {
    /// The newest number.
    private(set) var last = 0
    private var outcomes: [MutationOutcome] = []
    /// Of the commands, the last one's last: a number that comes with another command is no repetition. Windows that were stored
    /// without them have fewer.
    private var digests: [UInt32]?

    /// What became of a mutation that came before; nil for a new one, which may leave out numbers.
    func outcome(of mutation: DocumentMutation) -> MutationOutcome? {
        let number = mutation.number
        guard number <= last else { return nil }
        guard let index = outcomes.firstIndex(where: { $0.number == number }) else {
            return MutationOutcome(number: number, revision: 0, error: .outdated)
        }
        let place = index - outcomes.count + (digests?.count ?? 0)
        guard place < 0 || digests?[place] == mutation.digest else {
            return MutationOutcome(number: number, revision: 0, error: .numberReused)
        }
        return outcomes[index]
    }

    mutating func remember(_ outcome: MutationOutcome, of mutation: DocumentMutation) {
        last = max(last, outcome.number)
        outcomes.append(outcome)
        if digests == nil { digests = [] }
        digests?.append(mutation.digest)
        if outcomes.count > CollectionLimits.mutationsPerCall { outcomes.removeFirst() }
        if let count = digests?.count, count > outcomes.count { digests?.removeFirst() }
    }

    /// The last write that the client made.
    var revision: Int { outcomes.last { $0.error == nil }?.revision ?? 0 }
}
