internal import Platform
public import Trebuchet

/// What can be done with a document.
public enum CollectionAction: String, Codable, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// By the names that rules and refusals have for them. A link, an increment and an expiry are updates.
    case read, create, update, delete

    public var description: String { rawValue }
}

/// A change of a document that somebody asks for, with the document before and after it.
public struct DocumentChangeRequest: Sendable {
    /// `create`, `update` or `delete`. Links are updates.
    public let action: CollectionAction
    /// As it is now, and as it would be; for a new document both are that one.
    public let document: Document
    /// Nil for a new document.
    public let before: Document?
    /// Nil when it is deleted.
    public let after: Document?

    /// Asks for a document that is not there yet.
    public init(creating document: Document) {
        (action, self.document, before, after) = (.create, document, nil, document)
    }

    /// Asks for another content; ``document`` is the one from before.
    public init(updating before: Document, to after: Document) {
        (action, document, self.before, self.after) = (.update, before, before, after)
    }

    /// Asks for a document to be gone.
    public init(deleting document: Document) {
        (action, self.document, before, after) = (.delete, document, document, nil)
    }

    /// Nil when there is no document, neither before nor after.
    init?(_ before: Document?, _ after: Document?) {
        switch (before, after) {
        case (nil, nil): return nil
        case (nil, let after?): self.init(creating: after)
        case (let before?, nil): self.init(deleting: before)
        case (let before?, let after?): self.init(updating: before, to: after)
        }
    }

    /// The error for a change that somebody may not make.
    public func forbidden(_ reason: String? = nil) -> CollectionError {
        .forbidden(action, id: document.id.text, reason: reason)
    }
}

/// Those who may read the same documents of a collection. Each group has its queries evaluated once for all of its readers.
public enum ReaderGroup: Sendable, Hashable {
    /// All may read the same; they are not asked for single documents.
    case everybody
    /// All of one name may read the same.
    case named(String)
    /// Each principal has queries of its own.
    case alone
}

/// Who may do what with which document. Asked on a reactor: an answer must not block.
public protocol CollectionRules: Sendable {
    /// Asked before somebody is shown a document, and by ``check(_:_:in:)`` unless that is written anew.
    ///
    /// - Parameters:
    ///   - principal: who asks; nil for somebody who is not signed in.
    ///   - document: as it is now; the new one for `create`. Links are updates.
    func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool

    /// Asked before a document is created, updated or deleted; throws why that may not be done, which the client gets.
    /// By default ``may(_:_:_:in:)`` is asked, about the document as it is now.
    func check(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError)

    /// Whether all may read the same documents of a collection. Then readers share the evaluation of their queries, and
    /// `may` is not asked for `read`. Default: false.
    func readersAreAlike(in collection: String) -> Bool

    /// Who may read the same as somebody. By default `everybody` where readers are alike, `alone` where not.
    func readers(like principal: Principal?, in collection: String) -> ReaderGroup

    /// What a collection may grow to, and how fast. By default the server's limits, which are given.
    func limits(of collection: String, _ limits: CollectionLimits) -> CollectionLimits
}

extension CollectionRules {
    /// Asks ``may(_:_:_:in:)``, about the document as it is now, and refuses with `forbidden`.
    public func check(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError) {
        guard may(principal, change.action, change.document, in: collection) else { throw change.forbidden() }
    }

    /// False: each principal has queries of its own.
    public func readersAreAlike(in collection: String) -> Bool { false }

    /// `everybody` where readers are alike, `alone` where not.
    public func readers(like principal: Principal?, in collection: String) -> ReaderGroup {
        readersAreAlike(in: collection) ? .everybody : .alone
    }

    /// The server's limits, as they are given.
    public func limits(of collection: String, _ limits: CollectionLimits) -> CollectionLimits { limits }
}

/// Everybody reads and creates; only the creator updates and deletes. What somebody created who was not signed in, everybody
/// may update and delete.
public struct CreatorRules: CollectionRules {
    /// The rules of a ``CollectionHost`` that is given no others.
    public init() {}

    /// Reading and creating are for all; the rest is for the creator, or for everybody where there is none.
    public func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool {
        switch action {
        case .read, .create: true
        case .update, .delete:
            document.creator.map { creator in principal.map { $0.id.isSameBytes(as: creator) } ?? false } ?? true
        }
    }

    /// True: everybody reads everything.
    public func readersAreAlike(in collection: String) -> Bool { true }
}
