/// A condition on a document for a write; otherwise the write fails with
/// ``CollectionError/conditionFailed(id:revision:found:)``.
///
///     $todos.update("1", if: .field("status", equals: .string("open"))) { $0.status = "taken" }
public struct WriteCondition: Sendable, Hashable {
    /// The required values of fields; null for fields that must be missing.
    let fields: JSONObject
    /// The required number of the last write to the document.
    let revision: Int?
    /// True when the document must not exist.
    package let isAbsent: Bool

    init(fields: JSONObject = [:], revision: Int? = nil, isAbsent: Bool = false) {
        self.fields = fields
        self.revision = revision
        self.isAbsent = isAbsent
    }

    /// Requires that a field has this value; null for a missing field.
    public static func field(_ name: String, equals value: JSONValue) -> Self { Self(fields: [name: value]) }

    /// Requires that all of these fields have these values.
    public static func fields(_ values: JSONObject) -> Self { Self(fields: values) }

    /// Requires that the document is unchanged: its ``Document/revision`` is this.
    public static func revision(_ revision: Int) -> Self { Self(revision: revision) }

    /// Requires that no document has the id.
    public static let absent = Self(isAbsent: true)

    package func isSatisfied(by document: Document?) -> Bool {
        guard let document, !isAbsent else { return isAbsent && document == nil }
        guard revision.map({ $0 == document.revision }) ?? true else { return false }
        guard fields.hasWideNumbers || document.fields.hasWideNumbers else {
            // Equal values have the same canonical text; a large value of the document is not decoded.
            return fields.names.allSatisfy { name in
                fields.withText(of: name) { wanted in
                    document.fields.withText(of: name) { found in Self.areEqual(wanted, found) }
                }
            }
        }
        return fields.allSatisfy { JSONOrder.areEqual(document.fields[$0.name], $0.value) }
    }

    /// Compares canonical texts; a missing value is equal to null.
    private static func areEqual(_ one: UnsafeRawBufferPointer?, _ other: UnsafeRawBufferPointer?) -> Bool {
        switch (one, other) {
        case (let one?, let other?): one.hasSameBytes(other)
        case (let text?, nil), (nil, let text?): text.elementsEqual("null".utf8)
        case (nil, nil): true
        }
    }

    /// Returns the error with the current values of its fields, without those that are too large for a recorded response.
    package func failure(_ id: DocumentID, _ document: Document?) -> CollectionError {
        var found = JSONObject()
        var room = 256
        for name in fields.names.sorted() {
            guard let size = document?.fields.withText(of: name, { $0?.count }) else { continue }
            room -= name.utf8.count + size
            guard room >= 0 else { break }
            found[name] = document?.fields[name]
        }
        return .conditionFailed(id: id.text, revision: document?.revision, found: found)
    }
}
