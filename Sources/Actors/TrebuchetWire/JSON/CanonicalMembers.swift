/// The members of an object in a canonical text, in their order. A nested object is read with another cursor, so that each byte
/// of a text is read once however deep its objects nest.
@usableFromInline
package struct CanonicalMembers {
    @usableFromInline let text: UnsafeRawBufferPointer
    /// The index of the current member's first quote, or of the closing brace.
    package private(set) var start: Int
    /// The current name as it is in the text, without quotes; nil behind the last member.
    package private(set) var name: UnsafeRawBufferPointer?
    /// The index of the current value.
    @usableFromInline package private(set) var value = 0

    /// - Parameter object: the index of an opening brace.
    package init(_ text: UnsafeRawBufferPointer, of object: Int) {
        self.text = text
        start = object + 1
        readName()
    }

    private mutating func readName() {
        guard text[start] != UInt8(ascii: "}") else { return name = nil }
        if text[start] == UInt8(ascii: ",") { start += 1 }
        let end = CanonicalJSON.endOfString(start, text)
        name = UnsafeRawBufferPointer(rebasing: text[start + 1..<end - 1])
        value = end + 1
    }

    /// Continues with the next member.
    ///
    /// - Parameter end: the index behind the current value.
    package mutating func advance(behind end: Int) {
        start = end
        readName()
    }

    /// Returns the index behind the current value.
    package func valueEnd() -> Int {
        var scan = CanonicalJSON.Scan()
        return scan.end(ofValueAt: value, text)
    }

    /// Skips the other members, and returns the index behind the object.
    consuming func end() -> Int {
        while name != nil { advance(behind: valueEnd()) }
        return start + 1
    }

    @inlinable package var isObject: Bool { text[value] == UInt8(ascii: "{") }
    @inlinable package var isNull: Bool { text[value] == UInt8(ascii: "n") }

    /// The current member as text, with its name.
    func member(to end: Int) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: text[start..<end]) }

    @inlinable package func value(to end: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[value..<end])
    }
}
