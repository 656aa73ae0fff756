internal import Platform

/// Operations of administrators on documents, without the rules.
extension DocumentTable {
    /// The outcome of restoring a document.
    enum Restored: String, Sendable {
        case created, replaced, skipped
    }

    /// Restores a document with its creator. An existing document is replaced or kept; an identical one is always kept, and an
    /// expired one is skipped. A replaced document keeps its place in the order of creation; a new one comes last.
    ///
    /// - Parameter now: milliseconds since 1970.
    mutating func restore(
        _ document: Document, replaces: Bool, at now: Int
    ) throws(CollectionError) -> Restored {
        let id = document.id
        guard (1...CollectionLimits.maximumNameLength).contains(id.byteCount) else {
            throw .invalidDocument("an id has 1 to \(CollectionLimits.maximumNameLength) bytes")
        }
        guard Document.id(document.fields["id"]) == id else {
            throw .invalidDocument("its member 'id' is not '\(id)'")
        }
        guard !document.isExpired(at: now) else { return .skipped }
        let before = self.document(id)
        if let before, !replaces || before.isLike(document) { return .skipped }
        var restored = Document(
            id: id, fields: document.fields, creator: document.creator, created: before?.created ?? revision + 1,
            createdAt: document.createdAt == 0 ? now : document.createdAt, expiresAt: document.expiresAt)
        restored.origin = before?.origin
        try replace(id, with: restored, at: now)
        return before == nil ? .created : .replaced
    }

    /// Deletes a document; returns false when there is none.
    mutating func delete(_ id: DocumentID, at now: Int) throws(CollectionError) -> Bool {
        guard document(id) != nil else { return false }
        try replace(id, with: nil, at: now)
        return true
    }
}

extension Document {
    fileprivate func isLike(_ other: Document) -> Bool {
        fields == other.fields && expiresAt == other.expiresAt
            && creator.map { ByteText($0) } == other.creator.map { ByteText($0) }
    }
}
