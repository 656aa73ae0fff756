internal import Bytes
internal import Platform

/// A command with its condition.
package struct DocumentWrite: Sendable, Hashable {
    package let command: DocumentCommand
    package let condition: WriteCondition?

    package init(_ command: DocumentCommand, if condition: WriteCondition? = nil) {
        self.command = command
        self.condition = condition
    }

    /// The approximate number of bytes of its JSON.
    package var byteCount: Int {
        command.byteCount + (condition.map { JSONValue.object($0.fields).byteCount + 48 } ?? 0)
    }
}

/// One command, or several that are executed atomically. A client numbers its mutations, so that a repeated mutation is not
/// executed again.
package struct DocumentMutation: Sendable, Hashable {
    package let number: Int
    package let writes: [DocumentWrite]

    package init(number: Int, writes: [DocumentWrite]) {
        self.number = number
        self.writes = writes
    }

    init(number: Int, command: DocumentCommand) { self.init(number: number, writes: [DocumentWrite(command)]) }

    /// Distinguishes the mutation from another one of its client with the same number.
    package var digest: UInt32 {
        var text = ByteBuffer()
        for write in writes { write.append(to: &text) }
        var digest = StableDigest()
        digest.combine(words: text.bytes)
        return UInt32(truncatingIfNeeded: digest.value ^ digest.value >> 32)
    }

    /// The approximate number of bytes of its JSON.
    package var byteCount: Int { writes.reduce(32) { $0 + $1.byteCount } }
}

// trebuchet: as declared
/// The outcome of a mutation.
package struct MutationOutcome: Sendable, Hashable {
    package let number: Int
    /// The number of the write; that of the last write when nothing changed.
    package let revision: Int
    /// The reason why it was not executed.
    package var error: CollectionError?
    /// The index of the failed command in a transaction, from 0.
    package var index: Int?
    /// The newest write in the result of each open query of the connection, by query number. Set in the last outcome of a
    /// response. Those results were sent before the response, and include its outcomes.
    package var shown: [String: Int]?

    package init(
        number: Int, revision: Int, error: CollectionError? = nil, index: Int? = nil, shown: [String: Int]? = nil
    ) {
        self.number = number
        self.revision = revision
        self.error = error
        self.index = index
        self.shown = shown
    }

    /// The error for the caller; nil on success.
    package var failure: (any Error)? {
        guard let error, let index else { return error }
        return TransactionError(index: index, reason: error)
    }
}

/// The reason why a transaction failed; none of its commands was executed.
public struct TransactionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The index of the command that failed, from 0.
    public let index: Int
    /// The error of that command.
    public let reason: CollectionError

    public var description: String { "command \(index) of the transaction: \(reason)" }
}
