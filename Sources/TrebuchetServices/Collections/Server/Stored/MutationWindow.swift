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
        guard digest(at: index).map({ $0 == mutation.digest }) ?? true else {
            return MutationOutcome(number: number, revision: 0, error: .numberReused)
        }
        return outcomes[index]
    }

    mutating func remember(_ outcome: MutationOutcome, of mutation: DocumentMutation) {
        remember(outcome, digest: mutation.digest)
    }

    /// Remembers what became of a mutation that came behind all that is remembered; of one before that, nothing.
    ///
    /// - Parameter digest: of the command; nil where it was not noted.
    mutating func remember(_ outcome: MutationOutcome, digest: UInt32?) {
        guard outcome.number > last else { return }
        last = outcome.number
        outcomes.append(outcome)
        if digests == nil, digest != nil { digests = [] }
        if let digest { digests?.append(digest) }
        if outcomes.count > CollectionLimits.mutationsPerCall { outcomes.removeFirst() }
        if let count = digests?.count, count > outcomes.count { digests?.removeFirst() }
    }

    /// Outcomes of later mutations than this one, in the order of their numbers.
    func outcomes(after number: Int) -> [(outcome: MutationOutcome, digest: UInt32?)] {
        outcomes.indices.filter { outcomes[$0].number > number }.map { (outcomes[$0], digest(at: $0)) }
    }

    private func digest(at index: Int) -> UInt32? {
        guard let digests else { return nil }
        let place = index - outcomes.count + digests.count
        return place < 0 ? nil : digests[place]
    }

    /// The last write that the client made.
    var revision: Int { outcomes.last { $0.error == nil }?.revision ?? 0 }
}

/// What a batch changes of what the store remembers of a client.
struct WindowChange: Sendable {
    /// Nil for a client that is forgotten.
    let window: MutationWindow?
    /// The newest number whose outcome the store has; nil when it is to forget what it has.
    let known: Int?
}
