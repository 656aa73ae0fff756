internal import TrebuchetWire

/// Documents as a store has them.
extension Document {
    /// Reads what `writeStored` has written, without parsing it into values; nil for any other text, also for another form of the
    /// same document. `init(json:)` reads or refuses that.
    ///
    /// - Parameter index: an index whose memory is reused.
    package init?(stored line: UnsafeRawBufferPointer, _ index: inout JSONObjectIndex) {
        var line = CanonicalReader(line)
        guard line.consume(#"{"id":"#), let id = line.plainString(), line.consume(#","fields":"#),
            let fields = line.object(&index)
        else { return nil }
        var creator: UnsafeRawBufferPointer?
        if line.consume(#","creator":"#) {
            guard let name = line.plainString() else { return nil }
            creator = name
        }
        guard line.consume(#","created":"#), let created = line.integer(), line.consume(#","revision":"#),
            let revision = line.integer(), line.consume(#","createdAt":"#), let createdAt = line.integer(),
            line.consume(#","updatedAt":"#), let updatedAt = line.integer()
        else { return nil }
        var members = DocumentBuffer.Members(
            id: id, creator: creator, created: created, revision: revision, createdAt: createdAt, updatedAt: updatedAt)
        if line.consume(#","expiresAt":"#) {
            guard let expiry = line.integer() else { return nil }
            members.expiresAt = expiry
        }
        if line.consume(#","origin":"#) {
            guard let origin = line.integer().flatMap({ UInt32(exactly: $0) }) else { return nil }
            members.origin = origin
        }
        guard line.consume("}"), line.isAtEnd else { return nil }
        self.init(DocumentBuffer(fields, index, members))
    }
}
