/// What an engine could not do.
public struct ClusterEngineError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of failure it is; new kinds may come.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case unavailable, unknownOutcome, overloaded, tooLarge, invalid, unfit, damaged, dataLoss, failed, closed
        }
        private let kind: Kind

        /// It was not reached; nothing was done. Later it may be.
        public static let unavailable = Code(kind: .unavailable)
        /// It was asked, and the answer did not come: it was done, or not.
        public static let unknownOutcome = Code(kind: .unknownOutcome)
        /// Too much waits for it already; nothing was done.
        public static let overloaded = Code(kind: .overloaded)
        /// A payload, a snapshot or a name is larger than `ClusterEngineLimits` allow.
        public static let tooLarge = Code(kind: .tooLarge)
        /// What was asked for makes no sense: a lease of another slot, a name with letters that names have not.
        public static let invalid = Code(kind: .invalid)
        /// The engine behind the address is none that can be used: too old, or so configured that it would lose data.
        public static let unfit = Code(kind: .unfit)
        /// What the engine keeps is not what was written.
        public static let damaged = Code(kind: .damaged)
        /// A fence fell, or a log ends before an acknowledged entry: the engine has lost what it kept. A node that owned something by it
        /// stops, for good.
        public static let dataLoss = Code(kind: .dataLoss)
        /// The engine answered with an error; nothing was done.
        public static let failed = Code(kind: .failed)
        /// It was closed.
        public static let closed = Code(kind: .closed)

        public var description: String { kind.rawValue }
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened, and what can be done.
    public let message: String

    /// For an engine of your own.
    ///
    /// - Parameter message: what happened, and what can be done.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The engine has a lower fence than the lease that it once gave.
    package static func fenceFell(of lease: SlotLease, to fence: UInt64) -> Self {
        Self(
            .dataLoss,
            "the engine has lost what it kept: \(lease.slot) was owned with fence \(lease.fence), and has \(fence) now. Was it "
                + "emptied (FLUSHALL), did it throw keys away, or did a replica take its place that had not got all? Put it right, "
                + "then start the nodes again")
    }

    /// A log ends before an entry that was acknowledged, under a lease that is valid.
    package static func entriesLost(of log: ClusterLog, known: LogPosition, top: UInt64) -> Self {
        Self(
            .dataLoss,
            "the engine has lost what it kept: the log of '\(log)' ended at \(known.offset), and ends at \(top) now. Was an older backup "
                + "restored, did the server lose the end of its file, or did a replica take its place that had not got all? Put it right, "
                + "then start the nodes again")
    }

    /// The engine has not the generation that a node began with.
    package static var generationLost: Self {
        Self(
            .dataLoss,
            "the engine has lost what it kept: it has another generation than this node began with. Was it emptied (FLUSHALL), did it "
                + "throw keys away, or is another server at its address? Put it right, then start the nodes again")
    }

    public var description: String { message }
}
