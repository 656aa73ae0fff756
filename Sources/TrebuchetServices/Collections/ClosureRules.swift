public import Trebuchet

/// Rules as closures.
///
///     ClosureRules { principal, change, collection in
///         guard principal?.roles.contains("editor") == true else { throw change.forbidden("editors write") }
///     } read: { principal, document, collection in
///         document.fields["isPublic"] == .bool(true) || document.creator == principal?.id
///     }
///
/// Both are asked on a reactor and must not block.
public struct ClosureRules: CollectionRules {
    /// Throws why somebody may not make a change; nil stands for somebody who is not signed in.
    public typealias Check =
        @Sendable (
            _ principal: Principal?, _ change: DocumentChangeRequest, _ collection: String
        ) throws(CollectionError) -> Void
    /// Whether somebody is shown a document; nil stands for somebody who is not signed in.
    public typealias Read = @Sendable (_ principal: Principal?, _ document: Document, _ collection: String) -> Bool

    private let write: Check
    private let read: Read?

    /// - Parameters:
    ///   - write: throws why somebody may not create, update or delete a document.
    ///   - read: whether somebody is shown a document; each principal then has queries of its own. Default: everybody reads
    ///     everything.
    public init(write: @escaping Check, read: Read? = nil) {
        self.write = write
        self.read = read
    }

    /// Of reading, what the `read` closure says; true for all else, which ``check(_:_:in:)`` decides.
    public func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool { action != .read || read?(principal, document, collection) ?? true }

    /// Asks the `write` closure.
    public func check(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError) { try write(principal, change, collection) }

    /// True without a `read` closure.
    public func readersAreAlike(in collection: String) -> Bool { read == nil }
}
