/// A collection of documents at the server, and the type that an app reads them as.
///
///     extension Schema {
///         static let todos = CollectionKey<Todo>("todos")
///     }
///
/// A document is the JSON of an element: an object with a member `id`, a text or a whole number.
public struct CollectionKey<Element: Codable & Identifiable & Equatable & Sendable>: Hashable, Sendable
where Element.ID: Codable & Sendable {
    /// Up to 128 bytes of letters, digits, `-`, `_` and `.`.
    public let name: String

    public init(_ name: String) { self.name = name }
}
