public import Trebuchet

/// Collection rules from closures.
///
///     ClosureRules { principal, change, collection in
///         guard principal?.roles.contains("editor") == true else { throw change.forbidden("editors write") }
///     } read: { principal, document, collection in
///         document.fields["isPublic"] == .bool(true) || document.creator == principal?.id
///     }
///
/// Both closures run on a reactor and must not block.
public struct ClosureRules: CollectionRules {
    /// Validates a change; throws the reason for a refusal. The principal is nil for a caller that is not signed in.
    public typealias Check =
        @Sendable (
            _ principal: Principal?, _ change: DocumentChangeRequest, _ collection: String
        ) throws(CollectionError) -> Void
    /// Returns whether a caller may read a document. The principal is nil for a caller that is not signed in.
    public typealias Read = @Sendable (_ principal: Principal?, _ document: Document, _ collection: String) -> Bool

    private let write: Check
    private let read: Read?

    /// - Parameters:
    ///   - write: throws when the caller may not create, update or delete the document.
    ///   - read: returns whether the caller may read a document; each principal then has separate queries. Default: all callers
    ///     read all documents.
    public init(write: @escaping Check, read: Read? = nil) {
        self.write = write
        self.read = read
    }

    /// Returns the result of the `read` closure for `read`; true for all other actions, which ``validate(_:_:in:)`` decides.
    public func isAllowed(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool { action != .read || read?(principal, document, collection) ?? true }

    /// Calls the `write` closure.
    public func validate(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError) { try write(principal, change, collection) }

    /// Returns true without a `read` closure.
    public func hasUniformReaders(in collection: String) -> Bool { read == nil }
}
