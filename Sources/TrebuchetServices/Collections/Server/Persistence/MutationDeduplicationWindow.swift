/// The recorded mutations of a client, which prevent a repeated execution.
///
/// A client numbers its mutations and sends them in order, at most as many at once as the window has. It sends the next ones
/// when it has their outcomes, so each repeated mutation is in the window.
struct MutationDeduplicationWindow: Codable, Sendable, Equatable {
    /// The newest number.
    private(set) var last = 0
    private var outcomes: [MutationOutcome] = []
    /// Digests of the mutations, in the same order: a number with another digest is not a repetition. Windows from before
    /// digests were stored have fewer.
    private var digests: [UInt32]?

    /// Returns the outcome of a repeated mutation; nil for a new one, whose number may leave a gap.
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

    /// Records the outcome of a mutation that is newer than all recorded ones; others are ignored.
    ///
    /// - Parameter digest: the digest of the mutation; nil when it was not stored.
    mutating func remember(_ outcome: MutationOutcome, digest: UInt32?) {
        guard outcome.number > last else { return }
        last = outcome.number
        outcomes.append(outcome)
        if digests == nil, digest != nil { digests = [] }
        if let digest { digests?.append(digest) }
        if outcomes.count > CollectionLimits.mutationsPerCall { outcomes.removeFirst() }
        if let count = digests?.count, count > outcomes.count { digests?.removeFirst() }
    }

    /// Returns the outcomes of later mutations, sorted by number.
    func outcomes(after number: Int) -> [(outcome: MutationOutcome, digest: UInt32?)] {
        outcomes.indices.filter { outcomes[$0].number > number }.map { (outcomes[$0], digest(at: $0)) }
    }

    private func digest(at index: Int) -> UInt32? {
        guard let digests else { return nil }
        let place = index - outcomes.count + digests.count
        return place < 0 ? nil : digests[place]
    }

    /// The last write of the client.
    var revision: Int { outcomes.last { $0.error == nil }?.revision ?? 0 }
}

/// The change of a client's recorded mutations in a batch.
struct MutationWindowChange: Sendable {
    /// Nil for an evicted client.
    let window: MutationDeduplicationWindow?
    /// The newest number whose outcome is in the store; nil when the stored outcomes must be discarded.
    let known: Int?
}
