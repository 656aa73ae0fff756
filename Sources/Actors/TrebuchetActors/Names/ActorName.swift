/// The name of an actor as a key, compared by bytes. Swift's string equality treats some different texts as equal (é as one
/// character or as two). Stores and the table of the hot path distinguish them.
package struct ActorName: Hashable, Sendable, CustomStringConvertible {
    /// The maximum length of an actor name from a peer in bytes.
    package static let longest = 256

    /// The error for a longer name. It does not repeat the name.
    package static var tooLong: TrebuchetError {
        TrebuchetError(.invalidArguments, "an actor name must not exceed \(longest) bytes")
    }

    package let text: String

    package init(_ text: String) { self.text = text }

    package var isTooLong: Bool { text.utf8.count > Self.longest }

    package var description: String { text }

    package static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }

    package func hash(into hasher: inout Hasher) {
        var copy = text
        copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Returns whether the name begins with `prefix` and is longer.
    package func isBehind(_ prefix: String) -> Bool {
        text.utf8.count > prefix.utf8.count && text.utf8.starts(with: prefix.utf8)
    }
}
