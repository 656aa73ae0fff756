/// What a `StateStore` could not do.
public struct StateStoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of failure it is; new kinds may come.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        private enum Kind: String {
            case damaged, notAStore, newerSchema, inUse, full, unwritable, exposed, tooLarge, conflict, closed,
                unavailable, failed
        }
        private let kind: Kind

        /// What was kept is not what is there now: bytes are missing or changed. Nothing is taken from it.
        public static let damaged = Code(kind: .damaged)
        /// The file is something else: no database, or another program's.
        public static let notAStore = Code(kind: .notAStore)
        /// A newer version of this program has written it.
        public static let newerSchema = Code(kind: .newerSchema)
        /// Another process, or another store of this one, has it open for writing.
        public static let inUse = Code(kind: .inUse)
        /// The disk is full, or the store's own limit is reached.
        public static let full = Code(kind: .full)
        /// The file or its folder cannot be written.
        public static let unwritable = Code(kind: .unwritable)
        /// Others on the machine can read or write the file, which holds secrets.
        public static let exposed = Code(kind: .exposed)
        /// One value is larger than the store takes.
        public static let tooLarge = Code(kind: .tooLarge)
        /// A log is not where its writer believes it to be: somebody else has written it, or it is gone.
        public static let conflict = Code(kind: .conflict)
        /// The store was closed.
        public static let closed = Code(kind: .closed)
        /// The store is out of reach, or has not said what became of a write, which may be kept. Later it may answer: answers of
        /// calls wait while the write is tried again.
        public static let unavailable = Code(kind: .unavailable)
        /// Any other error of the store or the operating system.
        public static let failed = Code(kind: .failed)

        public var description: String { kind.rawValue }

        /// A Boolean value that indicates whether the store may have a write that failed with this code.
        package var leavesDoubt: Bool { [.unavailable, .failed, .damaged].contains(self) }
    }

    /// What kind of failure it is.
    public let code: Code
    /// What happened, to which file, and what can be done.
    public let message: String

    /// For a store of your own.
    ///
    /// - Parameter message: what happened, to which file, and what can be done.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
