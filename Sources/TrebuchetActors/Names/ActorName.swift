/// The name of an actor as a key: equal when its bytes are. Swift's own equality takes different texts for one (é in one
/// character or in two), which a store, and the table of the hot path, do not.
package struct ActorName: Hashable, Sendable, CustomStringConvertible {
    /// Bytes that the name of an actor may have that a peer asks for.
    package static let longest = 256

    /// What is said of a longer one, which is not said again.
    package static var tooLong: TrebuchetError {
        TrebuchetError(.invalidArguments, "the name of an actor has at most \(longest) bytes")
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

    /// Whether it begins with a text, and has more.
    package func isBehind(_ prefix: String) -> Bool {
        text.utf8.count > prefix.utf8.count && text.utf8.starts(with: prefix.utf8)
    }
}
