/// Who uses something.
package enum Party: Hashable, Sendable {
    case server
    case connection(UInt64)
    /// One that has handed over references to actors of its own, over all of its connections.
    case client(UInt64)
    case principal(PrincipalName)
    /// By the number of its address, which is the same in every process.
    case host(UInt64)

    /// For errors.
    package var name: String {
        switch self {
        case .server: "the server has"
        case .connection: "this connection has"
        case .client: "this client has"
        case .principal(let id): "'\(id.text)' has"
        case .host: "this host has"
        }
    }
}

/// The id of a principal as a key: equal when its bytes are. Swift's own equality takes different texts for one, which would give one
/// account what is another's.
package struct PrincipalName: Hashable, Sendable, ExpressibleByStringLiteral {
    package let text: String

    package init(_ text: String) { self.text = text }
    package init(stringLiteral text: String) { self.text = text }

    package static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        var copy = text
        copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
