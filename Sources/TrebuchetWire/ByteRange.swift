/// Where a value lies in a message.
package struct ByteRange: Sendable {
    package let offset: Int32
    package let count: Int32
    /// A string with escapes in it: its bytes are not its text.
    package let isEscaped: Bool

    @inlinable
    package init(_ offset: Int, _ count: Int, isEscaped: Bool = false) {
        self.offset = Int32(truncatingIfNeeded: offset)
        self.count = Int32(truncatingIfNeeded: count)
        self.isEscaped = isEscaped
    }

    /// The range of a member that the message does not have.
    package static let absent = ByteRange(-1, 0)

    @inlinable package var isAbsent: Bool { offset < 0 }

    /// The bytes as they stand in the message; a string's without its quotes.
    @inlinable
    package func bytes(in message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: message[Int(offset)..<Int(offset) + Int(count)])
    }
}
