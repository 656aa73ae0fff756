/// The numbered writes of a client to one collection, in order. A write stays until the server has answered it and all results
/// include it. Pure.
struct PendingWrites: Codable, Sendable, Equatable {
    struct Entry: Codable, Sendable, Equatable {
        let mutation: DocumentMutation
        /// The time of the write by this client's clock, in milliseconds since 1970. Nil for a write that an older client
        /// version has stored.
        var madeAt: Int?
        /// The number of the write at the server, once it was executed.
        var revision: Int?
    }

    /// The maximum number of pending writes; more are refused.
    static let limit = 10_000
    /// The maximum number of executed writes that wait for results; above it, the oldest are not shown any more.
    private static let executedLimit = 1_000
    private static let batchBytes = 256 << 10

    /// A secret that identifies the client whose numbers these are.
    let client: String
    private var lastNumber = 0
    /// The last number that was sent, perhaps without success.
    private var lastSent = 0
    private(set) var entries: [Entry] = []

    init(client: String) { self.client = client }

    /// True when writes wait for the server.
    var isWaiting: Bool { entries.contains { $0.revision == nil } }

    /// True when a client can have produced this content; operations on other content could overflow.
    var isSound: Bool {
        let numbers = entries.map(\.mutation.number)
        return (0..<Int.max / 2).contains(lastNumber) && (0...lastNumber).contains(lastSent)
            && zip([0] + numbers, numbers).allSatisfy { $0 < $1 } && numbers.last ?? 0 <= lastNumber
    }

    mutating func append(_ writes: [DocumentWrite], at now: Int = 0) throws(CollectionError) -> Int {
        guard entries.count < Self.limit else { throw .tooManyPending(limit: Self.limit) }
        lastNumber += 1
        entries.append(Entry(mutation: DocumentMutation(number: lastNumber, writes: writes), madeAt: now))
        return lastNumber
    }

    /// Removes a write; returns false when it may have reached the server.
    mutating func withdraw(_ number: Int) -> Bool {
        guard number > lastSent, let index = index(of: number) else { return false }
        entries.remove(at: index)
        return true
    }

    /// Returns the next batch: the first unanswered writes, including those that were sent before.
    mutating func beginSending() -> [DocumentMutation] {
        var batch: [DocumentMutation] = []
        var bytes = 0
        for entry in entries where entry.revision == nil {
            bytes += entry.mutation.byteCount
            guard batch.isEmpty || (batch.count < CollectionLimits.mutationsPerCall && bytes <= Self.batchBytes)
            else { break }
            batch.append(entry.mutation)
        }
        lastSent = max(lastSent, batch.last?.number ?? 0)
        return batch
    }

    /// The first write that was sent without a response; nil when there is none.
    var firstUncertain: Int? {
        entries.first { $0.revision == nil }.map(\.mutation.number).flatMap { $0 <= lastSent ? $0 : nil }
    }

    /// Documents with unanswered increments, which a result may already include.
    var uncertain: Set<DocumentID> {
        var ids: Set<DocumentID> = []
        for entry in entries where entry.revision == nil && entry.mutation.number <= lastSent {
            for write in entry.mutation.writes where write.command.adds { ids.insert(write.command.id) }
        }
        return ids
    }

    /// Returns the write of a response: for a transaction, the command that failed.
    func write(of outcome: MutationOutcome) -> DocumentWrite? {
        guard let index = index(of: outcome.number) else { return nil }
        let writes = entries[index].mutation.writes
        let commandIndex = outcome.index ?? 0
        return writes.indices.contains(commandIndex) ? writes[commandIndex] : nil
    }

    /// Applies a response. A refused write is removed.
    mutating func settle(_ outcome: MutationOutcome) {
        guard let index = index(of: outcome.number) else { return }
        if outcome.error != nil {
            entries.remove(at: index)
        } else {
            entries[index].revision = outcome.revision
        }
    }

    /// Removes writes that all results include: those up to this one.
    mutating func removeWrites(through revision: Int) {
        entries.removeAll { $0.revision.map { $0 <= revision } ?? false }
        let executed = entries.count { $0.revision != nil }
        guard executed > Self.executedLimit else { return }
        var excess = executed - Self.executedLimit
        entries.removeAll { entry in
            guard entry.revision != nil, excess > 0 else { return false }
            excess -= 1
            return true
        }
    }

    private func index(of number: Int) -> Int? { entries.firstIndex { $0.mutation.number == number } }
}
