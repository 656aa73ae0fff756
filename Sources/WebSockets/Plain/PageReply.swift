/// An answer whose body may be larger than what is kept of it in memory.
package struct PageReply: Sendable {
    /// The most of a body that is held for a connection: what waits for a peer stays below what `MemoryAccount.small` spares.
    package static let pieceBytes = 60 << 10

    /// Its body is the first piece.
    package var response: HTTPResponse
    /// What follows the first piece; nil when that is all.
    package var rest: Rest?

    /// The rest of a body.
    package struct Rest: Sendable {
        /// Bytes behind the first piece.
        package let count: Int
        /// Whether `read` may wait for a disk.
        package let blocks: Bool
        /// At most so many bytes from an offset behind the first piece; nil when there are none, which ends the connection.
        package let read: @Sendable (_ offset: Int, _ count: Int) -> [UInt8]?

        package init(count: Int, blocks: Bool, read: @escaping @Sendable (_ offset: Int, _ count: Int) -> [UInt8]?) {
            self.count = count
            self.blocks = blocks
            self.read = read
        }
    }

    package init(_ response: HTTPResponse, rest: Rest? = nil) {
        self.response = response
        self.rest = rest
    }

    /// A body that is in memory as long as the server: only a piece of it is copied at a time.
    package init(_ response: HTTPResponse, body: [UInt8]) {
        var response = response
        response.body = Array(body.prefix(Self.pieceBytes))
        let first = response.body.count
        self.response = response
        guard body.count > first else { return }
        rest = Rest(count: body.count - first, blocks: false) { offset, count in
            let start = first + offset
            return start < body.count ? Array(body[start..<min(start + count, body.count)]) : nil
        }
    }

    /// Bytes of the whole body.
    var length: Int { response.body.count + (rest?.count ?? 0) }
}
