internal import Bytes

/// The text of a page, encoded in several slices.
struct PageEncoder: Sendable {
    private let page: QueryPage
    private var text: [UInt8] = []
    /// The index of the next document.
    private var next = 0

    init(_ page: QueryPage) { self.page = page }

    /// The size of the text in bytes, without the other members of its documents.
    var byteCount: Int { page.documents.reduce(0) { $0 + $1.byteCount } }

    /// Encodes documents until the slice is over, but at least one. Returns true when all are encoded.
    mutating func resume(until slice: ScanSlice) -> Bool {
        var buffer = ByteBuffer()
        if text.isEmpty {
            buffer.append(QueryPage.start)
            buffer.append(UInt8(ascii: "["))
        }
        while next < page.documents.count {
            if next > 0 { buffer.append(UInt8(ascii: ",")) }
            page.documents[next].write(json: &buffer)
            next += 1
            if slice.isOver { break }
        }
        let isComplete = next == page.documents.count
        if isComplete {
            buffer.append(UInt8(ascii: "]"))
            page.writeEnd(to: &buffer)
        }
        text.append(contentsOf: buffer.bytes)
        return isComplete
    }

    /// Returns the text, when all documents are encoded.
    func encoded() -> EncodedJSON { EncodedJSON(canonical: text) }
}
