public import Trebuchet

/// What can be done with a document.
public enum CollectionAction: String, Codable, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case read, create, update, delete

    public var description: String { rawValue }
}

/// Who may do what with which document. Asked on a reactor: an answer must not block.
public protocol CollectionRules: Sendable {
    /// - Parameters:
    ///   - principal: who asks; nil for somebody who is not signed in.
    ///   - document: as it is now; the new one for `create`. Links are updates.
    func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool

    /// Whether all may read the same documents of a collection. Then readers share the evaluation of their queries, and
    /// `may` is not asked for `read`. Otherwise each principal has queries of its own.
    func readersAreAlike(in collection: String) -> Bool
}

extension CollectionRules {
    public func readersAreAlike(in collection: String) -> Bool { false }
}

/// Everybody reads and creates; only the creator updates and deletes. What somebody created who was not signed in, everybody
/// may update and delete.
public struct CreatorRules: CollectionRules {
    public init() {}

    public func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool {
        switch action {
        case .read, .create: true
        case .update, .delete:
            document.creator.map { creator in principal.map { $0.id.isSameBytes(as: creator) } ?? false } ?? true
        }
    }

    public func readersAreAlike(in collection: String) -> Bool { true }
}
