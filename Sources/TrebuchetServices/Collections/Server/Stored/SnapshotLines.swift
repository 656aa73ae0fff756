internal import Bytes
internal import Platform

/// The lines of a snapshot, slice by slice.
struct SnapshotLines {
    private let contents: CollectionContents
    private var documents: AnyIterator<Document>
    private var clients: Dictionary<ByteText, MutationWindow>.Iterator
    /// Of the slices that it has given.
    private(set) var byteCount = 0
    /// Of these, what is about clients.
    private(set) var clientBytes = 0
    /// Whether the last slice was given.
    private(set) var isAtEnd = false

    init(_ contents: CollectionContents) {
        self.contents = contents
        documents = AnyIterator(contents.documents.values.makeIterator())
        clients = contents.clients.makeIterator()
    }

    /// The next slice, which has so many bytes or hardly more; the last one may have less, and none.
    mutating func next(_ size: Int) throws -> [UInt8] {
        var lines = ByteBuffer()
        defer { byteCount += lines.count }
        if byteCount == 0 {
            StoredLines.write(
                revision: contents.revision, time: contents.time, secret: contents.secret, to: &lines)
        }
        while lines.count < size, let document = documents.next() { StoredLines.write(document, to: &lines) }
        let start = lines.count
        defer { clientBytes += lines.count - start }
        while lines.count < size {
            guard let (client, window) = clients.next() else {
                isAtEnd = true
                break
            }
            try StoredLines.write(WindowChange(window: window, known: nil), of: client, to: &lines)
        }
        return Array(lines.bytes)
    }
}
