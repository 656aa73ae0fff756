/// The error of a request to a coordination store.
public struct ClusterEngineError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of failure; new kinds may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the code.
        private enum Kind: String {
            case unavailable, unknownOutcome, overloaded, tooLarge, invalid, unsupported, damaged, dataLoss, failed,
                closed
        }
        private let kind: Kind

        /// The coordination store was not reached; the request had no effect. A retry may succeed.
        public static let unavailable = Code(kind: .unavailable)
        /// The request was sent, and no response arrived: it may have had an effect.
        public static let unknownOutcome = Code(kind: .unknownOutcome)
        /// Too many requests are queued; this one had no effect.
        public static let overloaded = Code(kind: .overloaded)
        /// A payload, a snapshot or a name exceeds `ClusterEngineLimits`.
        public static let tooLarge = Code(kind: .tooLarge)
        /// The request is invalid: for example a lease of another slot, or a name with invalid characters.
        public static let invalid = Code(kind: .invalid)
        /// The coordination store is unsuitable: too old, or configured such that it would lose data.
        public static let unsupported = Code(kind: .unsupported)
        /// The stored data differ from the written data.
        public static let damaged = Code(kind: .damaged)
        /// The coordination store has lost data: a fence fell, or a log ends before an acknowledged entry. A node that owned a slot
        /// of it stops permanently.
        public static let dataLoss = Code(kind: .dataLoss)
        /// The coordination store responded with an error; the request had no effect.
        public static let failed = Code(kind: .failed)
        /// The coordination store was closed.
        public static let closed = Code(kind: .closed)

        public var description: String { kind.rawValue }
    }

    /// The kind of failure.
    public let code: Code
    /// The cause, and the remedy.
    public let message: String

    /// Creates an error, for custom implementations.
    ///
    /// - Parameter message: the cause, and the remedy.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Returns the error for a fence lower than that of an earlier lease.
    package static func fenceFell(of lease: SlotLease, to fence: UInt64) -> Self {
        Self(
            .dataLoss,
            "the coordination store has lost data: \(lease.slot) was owned with fence \(lease.fence) and now has \(fence). Was it "
                + "emptied (FLUSHALL), did it evict keys, or was an incomplete replica promoted? Repair it, "
                + "then restart the nodes")
    }

    /// Returns the error for a log that ends before an acknowledged entry, under a valid lease.
    package static func entriesLost(of log: ClusterLog, known: LogPosition, top: UInt64) -> Self {
        Self(
            .dataLoss,
            "the coordination store has lost data: the log of '\(log)' ended at \(known.offset), and ends at \(top) now. Was an older backup "
                + "restored, did the server lose the end of its file, or was an incomplete replica promoted? Repair it, "
                + "then restart the nodes")
    }

    /// The error for a coordination store without the generation that a node began with.
    package static var generationLost: Self {
        Self(
            .dataLoss,
            "the coordination store has lost data: its generation changed since this node started. Was it emptied (FLUSHALL), did it "
                + "evict keys, or is another server at its address? Repair it, then restart the nodes")
    }

    public var description: String { message }
}
