/// A response whose body may be larger than the part of it in memory.
package struct StreamedResponse: Sendable {
    /// The maximum part of a body in memory per connection, so that unsent output stays below `MemoryAccount.small`.
    package static let pieceBytes = 60 << 10

    /// The response with the first piece of the body.
    package var response: HTTPResponse
    /// The remaining body, or nil if there is none.
    package var remainingBody: RemainingBody?
    /// The number of bytes that are in memory for this response alone, and count as buffered memory of the connection.
    package var ownBytes = 0

    /// The part of a body after the first piece.
    package struct RemainingBody: Sendable {
        /// The number of bytes after the first piece.
        package let count: Int
        /// Indicates whether `read` may block on a disk.
        package let blocks: Bool
        /// Returns at most `count` bytes at an offset behind the first piece. Nil or an empty result aborts the connection.
        package let read: @Sendable (_ offset: Int, _ count: Int) -> [UInt8]?
        /// Receives the progress, and may end the transfer; nil for a body that no limit of open files counts.
        package let transfer: BodyTransfer?

        package init(
            count: Int, blocks: Bool, transfer: BodyTransfer? = nil,
            read: @escaping @Sendable (_ offset: Int, _ count: Int) -> [UInt8]?
        ) {
            self.count = count
            self.blocks = blocks
            self.transfer = transfer
            self.read = read
        }
    }

    package init(_ response: HTTPResponse, remainingBody: RemainingBody? = nil) {
        self.response = response
        self.remainingBody = remainingBody
    }

    /// Creates a response from a body that stays in memory; only one piece at a time is copied.
    package init(_ response: HTTPResponse, body: [UInt8]) {
        var response = response
        response.body = Array(body.prefix(Self.pieceBytes))
        let first = response.body.count
        self.response = response
        guard body.count > first else { return }
        remainingBody = RemainingBody(count: body.count - first, blocks: false) { offset, count in
            let start = first + offset
            return start < body.count ? Array(body[start..<min(start + count, body.count)]) : nil
        }
    }

    /// The size of the whole body in bytes.
    var length: Int { response.body.count + (remainingBody?.count ?? 0) }
}
