/// The location of a value in a message.
///
/// It is public because the compiler does not inline `package` symbols across modules.
@_documentation(visibility: internal)
public struct ByteRange: Sendable {
    /// The offset of the first byte; negative for an absent member.
    public let offset: Int32
    /// The number of bytes.
    public let count: Int32
    /// Whether the value is a string with escapes, whose bytes differ from its text.
    public let isEscaped: Bool

    /// Creates a range.
    @inlinable
    public init(_ offset: Int, _ count: Int, isEscaped: Bool = false) {
        self.offset = Int32(truncatingIfNeeded: offset)
        self.count = Int32(truncatingIfNeeded: count)
        self.isEscaped = isEscaped
    }

    /// The range of a member that the message does not have.
    public static let absent = ByteRange(-1, 0)

    /// Whether the message does not have the member.
    @inlinable public var isAbsent: Bool { offset < 0 }

    /// Returns the bytes in the message, for a string without its quotes.
    @inlinable
    public func bytes(in message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: message[Int(offset)..<Int(offset) + Int(count)])
    }
}
