internal import Bytes
internal import TrebuchetWire

/// The recorded mutations of a client, which prevent a repeated execution.
///
/// A client numbers its mutations and sends them in order, at most as many at once as the window has. It sends the next ones
/// when it has their outcomes, so each repeated mutation is in the window. Errors are kept as in the log, and decoded only for a
/// repetition.
struct MutationDeduplicationWindow: Sendable, Equatable {
    /// A recorded outcome.
    private struct Entry: Sendable, Equatable {
        let number: Int
        let revision: Int
        /// Nil when the digest of the mutation was not stored.
        let digest: UInt32?
        /// The error and index as members of the outcome's JSON, each behind a comma; empty for none.
        let rest: [UInt8]

        var byteCount: Int { MemoryLayout<Self>.stride + rest.count }

        func append(to text: inout ByteBuffer) {
            text.append(#"{"number":"# as StaticString)
            text.append(decimal: Int64(number))
            text.append(#","revision":"# as StaticString)
            text.append(decimal: Int64(revision))
            if let digest {
                text.append(#","hash":"# as StaticString)
                text.append(decimal: Int64(digest))
            }
            text.append(rest)
            text.append(UInt8(ascii: "}"))
        }
    }

    /// The newest number.
    private(set) var last = 0
    /// The last write of the client.
    private(set) var revision = 0
    /// The outcomes, oldest first.
    private var entries: [Entry] = []
    /// The bytes of the outcomes.
    private(set) var byteCount = 0

    /// Returns the outcome of a repeated mutation; nil for a new one, whose number may leave a gap.
    func outcome(of mutation: DocumentMutation) -> MutationOutcome? {
        let number = mutation.number
        guard number <= last else { return nil }
        guard let entry = entries.first(where: { $0.number == number }), let outcome = Self.outcome(entry) else {
            return MutationOutcome(number: number, revision: 0, error: .outdated)
        }
        // Outcomes of earlier versions have no digest, or one that is computed in another way, as the member `digest`.
        guard entry.digest.map({ $0 == mutation.digest }) ?? true else {
            return MutationOutcome(number: number, revision: 0, error: .numberReused)
        }
        return outcome
    }

    private static func outcome(_ entry: Entry) -> MutationOutcome? {
        guard !entry.rest.isEmpty else { return MutationOutcome(number: entry.number, revision: entry.revision) }
        var text = ByteBuffer()
        entry.append(to: &text)
        return try? MutationOutcome(json: text.bytes)
    }

    mutating func remember(_ outcome: MutationOutcome, of mutation: DocumentMutation) {
        remember(outcome, digest: mutation.digest)
    }

    /// Records the outcome of a mutation that is newer than all recorded ones; others are ignored.
    ///
    /// - Parameter digest: the digest of the mutation; nil when it was not stored.
    mutating func remember(_ outcome: MutationOutcome, digest: UInt32?) {
        let error = outcome.error.flatMap { try? JSONValue(encoding: $0).json }
        remember(outcome.number, outcome.revision, digest, error: error, index: outcome.index)
    }

    private mutating func remember(
        _ number: Int, _ revision: Int, _ digest: UInt32?, error: [UInt8]?, index: Int?
    ) {
        guard number > last else { return }
        last = number
        if error == nil { self.revision = revision }
        var rest: [UInt8] = []
        if let error { rest += Array(#","error":"#.utf8) + error }
        if let index { rest += Array(#","index":\#(index)"#.utf8) }
        if entries.count == CollectionLimits.mutationsPerCall {
            byteCount -= entries[0].byteCount
            entries.removeFirst()
        }
        entries.append(Entry(number: number, revision: revision, digest: digest, rest: rest))
        byteCount += entries[entries.count - 1].byteCount
    }

    /// Returns the window with later outcomes only.
    func outcomes(after number: Int) -> Self {
        var later = self
        later.entries = Array(entries[(entries.firstIndex { $0.number > number } ?? entries.endIndex)...])
        later.byteCount = later.entries.reduce(0) { $0 + $1.byteCount }
        return later
    }

    /// Removes the outcomes of later mutations, which were not written.
    mutating func removeOutcomes(after number: Int) {
        while let entry = entries.last, entry.number > number {
            byteCount -= entry.byteCount
            entries.removeLast()
        }
        last = number
        revision = entries.last { $0.rest.isEmpty }?.revision ?? 0
    }

    /// Appends the outcomes of later mutations, sorted by number, with commas between them.
    func write(after number: Int, to lines: inout ByteBuffer) {
        var isFirst = true
        for entry in entries where entry.number > number {
            if !isFirst { lines.append(UInt8(ascii: ",")) }
            isFirst = false
            entry.append(to: &lines)
        }
    }

    /// Records an outcome as it is in the log.
    mutating func remember(stored outcome: JSONValue) throws {
        guard case .object(let members) = outcome, case .integer(let number)? = members["number"],
            case .integer(let revision)? = members["revision"]
        else { throw ValueError("an outcome requires the numbers number and revision") }
        var (digest, index): (UInt32?, Int?)
        if case .integer(let number)? = members["hash"] { digest = UInt32(exactly: number) }
        if case .integer(let number)? = members["index"] { index = Int(number) }
        remember(
            Int(number), Int(revision), digest,
            error: members.withText(of: "error") { $0.map { Array($0) } },
            index: index)
    }
}

/// The form of a window before the log.
extension MutationDeduplicationWindow: Decodable {
    private enum CodingKeys: CodingKey { case outcomes }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        for outcome in try members.decode([MutationOutcome].self, forKey: .outcomes) { remember(outcome, digest: nil) }
    }
}

/// The change of a client's recorded mutations in a batch.
struct MutationWindowChange: Sendable {
    /// At least the outcomes that are not in the store; nil for an evicted client.
    let window: MutationDeduplicationWindow?
    /// The newest number whose outcome is in the store; nil when the stored outcomes must be discarded.
    let known: Int?
    /// The slot of the client in its `ClientMutationLog`.
    var slot = 0
}
