/// The error of a `StateStore` operation.
public struct StateStoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of a failure. Later versions may add codes.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The codes by name.
        private enum Kind: String {
            case damaged, notAStore, newerSchema, inUse, full, unwritable, exposed, tooLarge, conflict, closed,
                unavailable, failed
        }
        private let kind: Kind

        /// The stored data is damaged: bytes are missing or changed. No part of it is used.
        public static let damaged = Code(kind: .damaged)
        /// The file is no database, or belongs to another program.
        public static let notAStore = Code(kind: .notAStore)
        /// A newer version of this program has written the file.
        public static let newerSchema = Code(kind: .newerSchema)
        /// Another process, or another store of this process, has the file open for writing.
        public static let inUse = Code(kind: .inUse)
        /// The disk is full, or the store's limit is reached.
        public static let full = Code(kind: .full)
        /// The file or its folder cannot be written.
        public static let unwritable = Code(kind: .unwritable)
        /// Other users of the machine can read or write the file, which contains secrets.
        public static let insecurePermissions = Code(kind: .exposed)
        /// One value exceeds the maximum size of the store.
        public static let tooLarge = Code(kind: .tooLarge)
        /// A log is not at the expected position: another writer has changed it, or it no longer exists.
        public static let conflict = Code(kind: .conflict)
        /// The store was closed.
        public static let closed = Code(kind: .closed)
        /// The store is unavailable, or the outcome of a write is unknown. A later attempt may succeed: responses of calls wait
        /// while the write is retried.
        public static let unavailable = Code(kind: .unavailable)
        /// Any other error of the store or the operating system.
        public static let failed = Code(kind: .failed)

        public var description: String { kind.rawValue }

        /// A Boolean value that indicates whether the store may have a write that failed with this code.
        package var hasUnknownOutcome: Bool { [.unavailable, .failed, .damaged].contains(self) }
    }

    /// The kind of the failure.
    public let code: Code
    /// The failure, the affected file, and a remedy.
    public let message: String

    /// Creates an error. For custom stores.
    ///
    /// - Parameter message: the failure, the affected file, and a remedy.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }

    /// A Boolean value that indicates whether a later attempt can succeed although the store did not fail: its slot has another
    /// owner, its lease is being renewed, or the store was closed.
    package var isOfOwnership: Bool { [.conflict, .unavailable, .closed].contains(code) }

    /// Returns the error for callers of an actor whose stored data cannot be read. No call has started, so callers can retry.
    ///
    /// - Parameter isClustered: True if the actor lives on one node of several. Then the node repeats the calls of a moved actor at
    ///   its owner.
    package func forCallers(_ text: String, isClustered: Bool) -> TrebuchetError {
        isClustered && code == .conflict ? .moved(text) : TrebuchetError(.unavailable, text)
    }
}
