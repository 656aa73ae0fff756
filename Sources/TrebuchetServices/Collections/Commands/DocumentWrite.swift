internal import Platform

/// A command, and what must hold for it to be done.
struct DocumentWrite: Sendable, Hashable {
    let command: DocumentCommand
    let condition: WriteCondition?

    init(_ command: DocumentCommand, if condition: WriteCondition? = nil) {
        self.command = command
        self.condition = condition
    }

    /// About how many bytes of JSON it has.
    var byteCount: Int { command.byteCount + (condition.map { JSONValue.object($0.fields).byteCount + 48 } ?? 0) }
}

/// What a client has done at once, or not at all: one command, or several. A client counts its mutations, so that one that is
/// sent again is not done again.
struct DocumentMutation: Sendable, Hashable {
    let number: Int
    let writes: [DocumentWrite]

    init(number: Int, writes: [DocumentWrite]) {
        self.number = number
        self.writes = writes
    }

    init(number: Int, command: DocumentCommand) { self.init(number: number, writes: [DocumentWrite(command)]) }

    /// Tells it from others of its client with the same number.
    var digest: UInt32 {
        var digest = StableDigest()
        for write in writes { digest.combine(write.value) }
        return UInt32(truncatingIfNeeded: digest.value ^ digest.value >> 32)
    }

    /// About how many bytes of JSON it has.
    var byteCount: Int { writes.reduce(32) { $0 + $1.byteCount } }
}

/// What became of a mutation.
struct MutationOutcome: Codable, Sendable, Hashable {
    let number: Int
    /// The number of the write; of the last one when nothing was to be done.
    let revision: Int
    /// Why it was not done.
    var error: CollectionError?
    /// Which of several commands that was, from 0.
    var index: Int?
    /// In the last of an answer: which write the result of each query shows that the connection has open, by the query's number. They
    /// have left before the answer, and show what the outcomes say.
    var shown: [String: Int]?

    /// What its caller is told; nil when it was done.
    var failure: (any Error)? {
        guard let error, let index else { return error }
        return TransactionError(index: index, reason: error)
    }
}

/// Why several commands that belong together were not done: none of them was.
public struct TransactionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Which of them could not be done, from 0.
    public let index: Int
    /// Why it could not be done.
    public let reason: CollectionError

    public var description: String { "command \(index) of the transaction: \(reason)" }
}
