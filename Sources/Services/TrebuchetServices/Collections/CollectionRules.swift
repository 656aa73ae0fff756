internal import Platform
public import Trebuchet

/// A requested change of a document, with the document before and after it.
public struct DocumentChangeRequest: Sendable {
    /// `create`, `update` or `delete`. Links are updates.
    public let action: CollectionAction
    /// The current document, or the new one for `create`.
    public let document: Document
    /// The current document; nil for a new one.
    public let before: Document?
    /// The changed document; nil when it is deleted.
    public let after: Document?

    /// Creates a request for a new document.
    public init(creating document: Document) {
        (action, self.document, before, after) = (.create, document, nil, document)
    }

    /// Creates a request for a change; ``document`` is the current one.
    public init(updating before: Document, to after: Document) {
        (action, document, self.before, self.after) = (.update, before, before, after)
    }

    /// Creates a request for a deletion.
    public init(deleting document: Document) {
        (action, self.document, before, after) = (.delete, document, document, nil)
    }

    /// Returns nil when there is no document before or after the change.
    init?(_ before: Document?, _ after: Document?) {
        switch (before, after) {
        case (nil, nil): return nil
        case (nil, let after?): self.init(creating: after)
        case (let before?, nil): self.init(deleting: before)
        case (let before?, let after?): self.init(updating: before, to: after)
        }
    }

    /// Returns the error for a refused change.
    public func forbidden(_ reason: String? = nil) -> CollectionError {
        .forbidden(action, id: document.id.text, reason: reason)
    }
}

/// A group of callers that may read the same documents of a collection. The server evaluates a query once for each group.
public enum ReaderGroup: Sendable, Hashable {
    /// All callers may read the same; the rules are not asked for single documents.
    case allCallers
    /// All callers with the same group name may read the same.
    case named(String)
    /// Each principal has separate queries.
    case separate
}

/// Authorization rules for collections. The methods run on a reactor and must not block.
public protocol CollectionRules: Sendable {
    /// Returns whether a caller may perform an action. It is called before a caller receives a document, and by the default
    /// implementation of ``validate(_:_:in:)``.
    ///
    /// - Parameters:
    ///   - principal: the caller's principal; nil when the caller is not signed in.
    ///   - document: the current document, or the new one for `create`. Links are updates.
    func isAllowed(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool

    /// Validates a change before a document is created, updated or deleted; throws the error for the client. By default it
    /// calls ``isAllowed(_:_:_:in:)`` for the current document.
    func validate(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError)

    /// Returns whether all callers may read the same documents of a collection. Then they share the evaluation of their
    /// queries, and `isAllowed` is not called for `read`. Default: false.
    func hasUniformReaders(in collection: String) -> Bool

    /// Returns the group of callers that may read the same as a principal. By default it is `allCallers` where readers are
    /// alike, otherwise `separate`.
    func readerGroup(for principal: Principal?, in collection: String) -> ReaderGroup

    /// Returns the limits of a collection. By default they are the server's limits, which are the second argument.
    func limits(of collection: String, _ limits: CollectionLimits) -> CollectionLimits
}

extension CollectionRules {
    /// Calls ``isAllowed(_:_:_:in:)`` for the current document, and throws `forbidden` for a refusal.
    public func validate(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError) {
        guard isAllowed(principal, change.action, change.document, in: collection) else { throw change.forbidden() }
    }

    /// Returns false: each principal has separate queries.
    public func hasUniformReaders(in collection: String) -> Bool { false }

    /// Returns `allCallers` where readers are alike, otherwise `separate`.
    public func readerGroup(for principal: Principal?, in collection: String) -> ReaderGroup {
        hasUniformReaders(in: collection) ? .allCallers : .separate
    }

    /// Returns the server's limits.
    public func limits(of collection: String, _ limits: CollectionLimits) -> CollectionLimits { limits }
}

/// Allows all callers to read and create, and only the creator to update and delete. All callers may update and delete
/// documents without a creator.
public struct CreatorRules: CollectionRules {
    /// Creates the rules that a ``CollectionHost`` uses by default.
    public init() {}

    /// Returns true for reading and creating; for other actions, when the caller is the creator or there is none.
    public func isAllowed(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool {
        switch action {
        case .read, .create: true
        case .update, .delete:
            document.creator.map { creator in principal.map { $0.id.isSameBytes(as: creator) } ?? false } ?? true
        }
    }

    /// Returns true: all callers may read all documents.
    public func hasUniformReaders(in collection: String) -> Bool { true }
}
