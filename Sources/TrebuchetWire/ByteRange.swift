/// Where a value lies in a message.
///
/// Public because the compiler inlines nothing that is `package` into other modules.
@_documentation(visibility: internal)
public struct ByteRange: Sendable {
    public let offset: Int32
    public let count: Int32
    /// A string with escapes in it: its bytes are not its text.
    public let isEscaped: Bool

    @inlinable
    public init(_ offset: Int, _ count: Int, isEscaped: Bool = false) {
        self.offset = Int32(truncatingIfNeeded: offset)
        self.count = Int32(truncatingIfNeeded: count)
        self.isEscaped = isEscaped
    }

    /// The range of a member that the message does not have.
    public static let absent = ByteRange(-1, 0)

    @inlinable public var isAbsent: Bool { offset < 0 }

    /// The bytes as they stand in the message; a string's without its quotes.
    @inlinable
    public func bytes(in message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: message[Int(offset)..<Int(offset) + Int(count)])
    }
}
