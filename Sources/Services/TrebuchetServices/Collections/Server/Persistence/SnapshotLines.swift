internal import Bytes
internal import Platform

/// The lines of a snapshot, in slices.
struct SnapshotLines {
    private let contents: CollectionContents
    private var documents: AnyIterator<Document>
    private var clients: Dictionary<ByteText, MutationDeduplicationWindow>.Iterator
    /// The bytes of the slices that were returned.
    private(set) var byteCount = 0
    /// The bytes of lines about clients in those slices.
    private(set) var clientBytes = 0
    /// True when the last slice was returned.
    private(set) var isAtEnd = false

    init(_ contents: CollectionContents) {
        self.contents = contents
        documents = AnyIterator(contents.documents.values.makeIterator())
        clients = (contents.copyClients?() ?? contents.clients).makeIterator()
    }

    /// Returns the next slice, which has `size` bytes or slightly more; the last one may be smaller or empty.
    mutating func next(_ size: Int) -> [UInt8] {
        var lines = ByteBuffer()
        defer { byteCount += lines.count }
        if byteCount == 0 {
            CollectionLogFormat.write(
                revision: contents.revision, time: contents.time, secret: contents.secret, to: &lines)
        }
        while lines.count < size, let document = documents.next() { CollectionLogFormat.write(document, to: &lines) }
        let start = lines.count
        defer { clientBytes += lines.count - start }
        while lines.count < size {
            guard let (client, window) = clients.next() else {
                isAtEnd = true
                break
            }
            CollectionLogFormat.write(
                MutationWindowChange(window: window, known: nil), of: client, to: &lines)
        }
        return Array(lines.bytes)
    }
}
