/// A pattern for names: `*` matches any characters, or none.
struct NamePattern: Sendable, Hashable {
    let text: String
    private let parts: [[UInt8]]

    init(_ text: String) {
        self.text = text
        parts = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
    }

    /// True for a pattern without `*`.
    var isName: Bool { parts.count == 1 }

    /// The precision of the pattern; of two matching patterns, the more precise one applies.
    var precision: Int { isName ? .max : text.utf8.count - (parts.count - 1) }

    func matches(_ name: String) -> Bool {
        guard !isName else { return name.utf8.elementsEqual(parts[0]) }
        var rest = Array(name.utf8)[...]
        guard rest.starts(with: parts[0]) else { return false }
        rest = rest.dropFirst(parts[0].count)
        guard let last = parts.last, rest.suffix(last.count).elementsEqual(last) else {
            return false
        }
        rest = rest.dropLast(last.count)
        for part in parts.dropFirst().dropLast() where !part.isEmpty {
            guard let found = rest.firstRange(of: part) else { return false }
            rest = rest[found.upperBound...]
        }
        return true
    }
}
