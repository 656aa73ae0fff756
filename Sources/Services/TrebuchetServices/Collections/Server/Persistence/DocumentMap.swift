/// Documents by id. A copy is cheap, and while one exists a change copies only a small part of the documents. Pure.
struct DocumentMap: Sendable {
    /// The documents whose ids have some bits of their hashes in common.
    private struct Part {
        /// In any order, without gaps.
        var documents: [Document] = []
        var index = DocumentIndex()
        /// The number of documents to prepare for, until the first one.
        private var capacity = 0

        init(capacity: Int = 0) { self.capacity = capacity }

        func place(of id: UnsafeRawBufferPointer, _ hash: Int) -> Int? {
            index.place(hash) { documents[$0].hasID(id) }
        }

        /// Returns false when the document replaces another one.
        mutating func insert(_ document: Document, _ hash: Int) -> Bool {
            if let place = document.withID({ place(of: $0, hash) }) {
                documents[place] = document
                return false
            }
            if capacity > 0 {
                documents.reserveCapacity(capacity)
                (index, capacity) = (DocumentIndex(capacity: capacity), 0)
            }
            documents.append(document)
            index.insert(documents.count - 1, hash) { documents[$0].partHash }
            return true
        }

        mutating func remove(_ id: UnsafeRawBufferPointer, _ hash: Int) -> Document? {
            guard let place = place(of: id, hash) else { return nil }
            index.remove(place, hash) { documents[$0].partHash }
            let last = documents.count - 1
            if place != last { index.move(last, to: place, documents[last].partHash) }
            documents.swapAt(place, last)
            return documents.removeLast()
        }
    }

    /// With 100,000 documents each part has 400.
    private static let partCount = 256

    private var parts: [Part]
    private(set) var count = 0

    init(_ documents: some Sequence<Document> = []) {
        parts = Array(repeating: Part(), count: Self.partCount)
        for document in documents { insert(document) }
    }

    var isEmpty: Bool { count == 0 }
    /// The documents, unordered.
    var values: [Document] {
        var all: [Document] = []
        all.reserveCapacity(count)
        for part in parts { all += part.documents }
        return all
    }
    /// The ids, unordered.
    var keys: some Collection<DocumentID> { values.lazy.map(\.id) }

    /// Prepares for about this number of documents.
    mutating func reserveCapacity(_ count: Int) {
        guard isEmpty, count > 0 else { return }
        // Some parts have more than others.
        let each = count / Self.partCount
        let part = Part(capacity: each + each / 8 + 1)
        for index in parts.indices { parts[index] = part }
    }

    subscript(id: DocumentID) -> Document? {
        get {
            var text = id.text
            return text.withUTF8 { id in
                let id = UnsafeRawBufferPointer(id)
                let (part, hash) = Self.location(DocumentIndex.hash(id))
                return parts[part].place(of: id, hash).map { parts[part].documents[$0] }
            }
        }
        set { if let newValue { insert(newValue) } else { remove(id) } }
    }

    /// Adds a document, or replaces the one with its id.
    mutating func insert(_ document: Document) {
        let (part, hash) = Self.location(document.idHash)
        if parts[part].insert(document, hash) { count += 1 }
    }

    /// Removes a document.
    ///
    /// - Returns: the document, or nil when there was none.
    @discardableResult
    mutating func remove(_ id: DocumentID) -> Document? {
        var text = id.text
        return text.withUTF8 { id in
            let id = UnsafeRawBufferPointer(id)
            let (part, hash) = Self.location(DocumentIndex.hash(id))
            guard let document = parts[part].remove(id, hash) else { return nil }
            count -= 1
            return document
        }
    }

    /// Returns the part of an id, and the bits of its hash that differ within the part.
    fileprivate static func location(_ hash: Int) -> (part: Int, hash: Int) {
        (hash & (partCount - 1), hash >> partCount.trailingZeroBitCount)
    }
}

extension DocumentMap: Equatable {
    /// Returns whether both have equal documents, in any order.
    static func == (one: Self, other: Self) -> Bool {
        one.count == other.count && one.values.allSatisfy { other[$0.id] == $0 }
    }
}

extension Document {
    /// The hash of its id within a part.
    fileprivate var partHash: Int { DocumentMap.location(idHash).hash }
}
