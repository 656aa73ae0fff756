/// Documents by id. A copy is cheap, and while one exists a change copies only a small part of the documents. Pure.
struct DocumentMap: Sendable, Equatable {
    /// With 100,000 documents each part has 400.
    private static let partCount = 256

    private var parts: [[DocumentID: Document]]
    private(set) var count = 0

    init(_ documents: some Sequence<Document> = []) {
        parts = Array(repeating: [:], count: Self.partCount)
        for document in documents { self[document.id] = document }
    }

    var isEmpty: Bool { count == 0 }
    /// The documents, unordered.
    var values: some Collection<Document> { parts.lazy.flatMap(\.values) }
    /// The ids, unordered.
    var keys: some Collection<DocumentID> { parts.lazy.flatMap(\.keys) }

    subscript(id: DocumentID) -> Document? {
        get { parts[Self.part(of: id)][id] }
        set {
            let part = Self.part(of: id)
            if let newValue {
                if parts[part].updateValue(newValue, forKey: id) == nil { count += 1 }
            } else if parts[part].removeValue(forKey: id) != nil {
                count -= 1
            }
        }
    }

    /// Removes a document.
    ///
    /// - Returns: the document, or nil when there was none.
    @discardableResult
    mutating func remove(_ id: DocumentID) -> Document? {
        guard let document = parts[Self.part(of: id)].removeValue(forKey: id) else { return nil }
        count -= 1
        return document
    }

    private static func part(of id: DocumentID) -> Int {
        Int(truncatingIfNeeded: UInt(bitPattern: id.hashValue) % UInt(partCount))
    }
}
