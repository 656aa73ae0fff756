/// The writes of a client to one collection that its server has not answered, or whose answer is not seen in all results yet:
/// in order, each with its number. Pure.
struct PendingWrites: Codable, Sendable, Equatable {
    struct Entry: Codable, Sendable, Equatable {
        let mutation: DocumentMutation
        /// When it was made, by this client's clock: milliseconds since 1970. Nil for one that an older client kept.
        var madeAt: Int?
        /// The number of the server's write, once it is done.
        var revision: Int?
    }

    /// Writes that may wait; more are refused.
    static let limit = 10_000
    /// Writes that are done and wait to be seen; the first of more are not shown any more.
    private static let doneLimit = 1_000
    private static let batchBytes = 256 << 10

    /// Tells the server whose numbers they are: a secret.
    let client: String
    private var lastNumber = 0
    /// The last number that was sent, perhaps in vain.
    private var lastSent = 0
    private(set) var entries: [Entry] = []

    init(client: String) { self.client = client }

    /// Whether writes wait for the server.
    var isWaiting: Bool { entries.contains { $0.revision == nil } }

    /// Whether a client can have written this: what is counted on from there would not come to a good end else.
    var isSound: Bool {
        let numbers = entries.map(\.mutation.number)
        return (0..<Int.max / 2).contains(lastNumber) && (0...lastNumber).contains(lastSent)
            && zip([0] + numbers, numbers).allSatisfy { $0 < $1 } && numbers.last ?? 0 <= lastNumber
    }

    mutating func add(_ writes: [DocumentWrite], at now: Int = 0) throws(CollectionError) -> Int {
        guard entries.count < Self.limit else { throw .tooManyPending(limit: Self.limit) }
        lastNumber += 1
        entries.append(Entry(mutation: DocumentMutation(number: lastNumber, writes: writes), madeAt: now))
        return lastNumber
    }

    /// Takes a write back; false when it may have reached the server.
    mutating func takeBack(_ number: Int) -> Bool {
        guard number > lastSent, let index = index(of: number) else { return false }
        entries.remove(at: index)
        return true
    }

    /// What is to be sent next: the first writes that are not answered, those that were sent before too.
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

    /// The first write that was sent and has no answer; nil when all have theirs.
    var firstUncertain: Int? {
        entries.first { $0.revision == nil }.map(\.mutation.number).flatMap { $0 <= lastSent ? $0 : nil }
    }

    /// Documents to which writes add that the server may have done without an answer: a result may have them already.
    var uncertain: Set<DocumentID> {
        var ids: Set<DocumentID> = []
        for entry in entries where entry.revision == nil && entry.mutation.number <= lastSent {
            for write in entry.mutation.writes where write.command.adds { ids.insert(write.command.id) }
        }
        return ids
    }

    /// What an answer is about: of several writes that belong together the one that could not be done.
    func write(of outcome: MutationOutcome) -> DocumentWrite? {
        guard let index = index(of: outcome.number) else { return nil }
        let writes = entries[index].mutation.writes
        let place = outcome.index ?? 0
        return writes.indices.contains(place) ? writes[place] : nil
    }

    /// Notes an answer. A write that was refused is forgotten.
    mutating func settle(_ outcome: MutationOutcome) {
        guard let index = index(of: outcome.number) else { return }
        if outcome.error != nil {
            entries.remove(at: index)
        } else {
            entries[index].revision = outcome.revision
        }
    }

    /// Forgets what all results show: they are at this write, or behind it.
    mutating func forget(through revision: Int) {
        entries.removeAll { $0.revision.map { $0 <= revision } ?? false }
        let done = entries.count { $0.revision != nil }
        guard done > Self.doneLimit else { return }
        var excess = done - Self.doneLimit
        entries.removeAll { entry in
            guard entry.revision != nil, excess > 0 else { return false }
            excess -= 1
            return true
        }
    }

    private func index(of number: Int) -> Int? { entries.firstIndex { $0.mutation.number == number } }
}
