/// A document that is no element of an app's type.
public struct UnreadableDocument: Sendable, Hashable {
    public let id: String
    /// Which of its members is missing, or of another type.
    public let reason: String

    var error: CollectionError { .unreadable(id: id, reason: reason) }
}
