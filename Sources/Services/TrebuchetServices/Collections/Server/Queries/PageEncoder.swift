internal import Bytes

/// The text of a page, encoded in several slices.
///
/// `@unchecked Sendable`: used in its collection's isolation only.
final class PageEncoder: @unchecked Sendable {
    private let page: QueryPage
    private var text = ByteBuffer()
    /// The index of the next document.
    private var next = 0

    init(_ page: QueryPage) {
        self.page = page
        text.append(QueryPage.start)
        text.append(UInt8(ascii: "["))
    }

    /// The size of the text in bytes, without the other members of its documents.
    var byteCount: Int { page.documents.reduce(0) { $0 + $1.byteCount } }

    /// Encodes documents until the slice is over, but at least one. Returns true when all are encoded.
    func resume(until slice: ScanSlice) -> Bool {
        while next < page.documents.count {
            if next > 0 { text.append(UInt8(ascii: ",")) }
            page.documents[next].write(json: &text)
            next += 1
            if slice.isOver { break }
        }
        return next == page.documents.count
    }

    /// Returns the text, when all documents are encoded.
    func encoded() -> EncodedJSON {
        text.append(UInt8(ascii: "]"))
        page.writeEnd(to: &text)
        return EncodedJSON(canonical: text.bytes)
    }
}
