internal import Bytes
internal import TrebuchetWire

/// The recorded mutations of a client, which prevent a repeated execution.
///
/// A client numbers its mutations and sends them in order, at most as many at once as the window has. It sends the next ones
/// when it has their outcomes, so each repeated mutation is in the window. Outcomes are kept as in the log, and decoded only for
/// a repetition.
struct MutationDeduplicationWindow: Sendable, Equatable {
    /// The newest number.
    private(set) var last = 0
    /// The last write of the client.
    private(set) var revision = 0
    private var count = 0
    /// The outcomes, oldest first, each with a comma behind it:
    ///
    ///     {"number":5,"revision":7,"digest":99},
    private var text: [UInt8] = []

    /// The bytes of the outcomes.
    var byteCount: Int { text.count }

    /// Returns the outcome of a repeated mutation; nil for a new one, whose number may leave a gap.
    func outcome(of mutation: DocumentMutation) -> MutationOutcome? {
        let number = mutation.number
        guard number <= last else { return nil }
        guard let (outcome, digest) = outcome(number) else {
            return MutationOutcome(number: number, revision: 0, error: .outdated)
        }
        // Outcomes from before digests were stored have none.
        guard digest.map({ $0 == mutation.digest }) ?? true else {
            return MutationOutcome(number: number, revision: 0, error: .numberReused)
        }
        return outcome
    }

    private func outcome(_ number: Int) -> (MutationOutcome, digest: UInt32?)? {
        text.withUnsafeBytes { text in
            var start = 0
            while start < text.count {
                let end = Self.end(of: start, in: text)
                let line = UnsafeRawBufferPointer(rebasing: text[start..<end])
                if Self.number(line) == number { return try? Self.read(line) }
                start = end + 1
            }
            return nil
        }
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
        var line = ByteBuffer(capacity: 96)
        line.append(Self.head)
        line.append(decimal: Int64(number))
        line.append(#","revision":"# as StaticString)
        line.append(decimal: Int64(revision))
        if let digest {
            line.append(#","digest":"# as StaticString)
            line.append(decimal: Int64(digest))
        }
        if let error {
            line.append(#","error":"# as StaticString)
            line.append(error)
        }
        if let index {
            line.append(#","index":"# as StaticString)
            line.append(decimal: Int64(index))
        }
        line.append("}," as StaticString)
        count += 1
        if count > CollectionLimits.mutationsPerCall {
            count -= 1
            text.removeFirst(text.withUnsafeBytes { Self.end(of: 0, in: $0) } + 1)
        }
        text.append(contentsOf: line.bytes)
    }

    // MARK: Text

    private static let head: StaticString = #"{"number":"#

    private static func end(of start: Int, in text: UnsafeRawBufferPointer) -> Int {
        var scan = CanonicalJSON.Scan()
        return scan.end(ofValueAt: start, text)
    }

    private static func number(_ line: UnsafeRawBufferPointer) -> Int {
        var number = 0
        for digit in line.dropFirst(head.utf8CodeUnitCount) {
            guard digit &- 0x30 < 10 else { break }
            number = number &* 10 &+ Int(digit &- 0x30)
        }
        return number
    }

    private static func read(_ line: UnsafeRawBufferPointer) throws -> (
        MutationOutcome, digest: UInt32?
    ) {
        let outcome = try MutationOutcome(json: line)
        guard case .object(let members) = try JSONValue(json: line),
            case .integer(let digest)? = members["digest"]
        else {
            return (outcome, nil)
        }
        return (outcome, UInt32(exactly: digest))
    }

    /// Appends the outcomes of later mutations, sorted by number, with commas between them.
    func write(after number: Int, to lines: inout ByteBuffer) {
        text.withUnsafeBytes { text in
            var start = 0
            while start < text.count,
                Self.number(UnsafeRawBufferPointer(rebasing: text[start...])) <= number
            {
                start = Self.end(of: start, in: text) + 1
            }
            guard start < text.count else { return }
            lines.append(UnsafeRawBufferPointer(rebasing: text[start..<text.count - 1]))
        }
    }

    /// Records an outcome as it is in the log.
    mutating func remember(stored outcome: JSONValue) throws {
        guard case .object(let members) = outcome, case .integer(let number)? = members["number"],
            case .integer(let revision)? = members["revision"]
        else { throw ValueError("an outcome requires the numbers number and revision") }
        var (digest, index): (UInt32?, Int?)
        if case .integer(let number)? = members["digest"] { digest = UInt32(exactly: number) }
        if case .integer(let number)? = members["index"] { index = Int(number) }
        remember(
            Int(number), Int(revision), digest,
            error: members.withText(of: "error") { $0.map { Array($0) } },
            index: index)
    }
}

/// The form of a window before the log.
extension MutationDeduplicationWindow: Decodable {
    private enum CodingKeys: CodingKey { case outcomes, digests }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let outcomes = try members.decode([MutationOutcome].self, forKey: .outcomes)
        // Windows from before digests were stored have fewer.
        let digests = try members.decodeIfPresent([UInt32].self, forKey: .digests) ?? []
        for (index, outcome) in outcomes.enumerated() {
            let place = index - outcomes.count + digests.count
            remember(outcome, digest: place < 0 ? nil : digests[place])
        }
    }
}

/// The change of a client's recorded mutations in a batch.
struct MutationWindowChange: Sendable {
    /// Nil for an evicted client.
    let window: MutationDeduplicationWindow?
    /// The newest number whose outcome is in the store; nil when the stored outcomes must be discarded.
    let known: Int?
}
