/// What must hold for a document so that something is done with it: else it fails with ``CollectionError/conditionFailed(id:revision:found:)``.
///
///     $todos.update("1", if: .field("status", equals: .string("open"))) { $0.status = "taken" }
public struct WriteCondition: Sendable, Hashable {
    /// Values that fields must have; null for fields that must be absent.
    let fields: JSONObject
    /// The number of the last write to it.
    let revision: Int?
    /// There is no such document.
    let isAbsent: Bool

    init(fields: JSONObject = [:], revision: Int? = nil, isAbsent: Bool = false) {
        self.fields = fields
        self.revision = revision
        self.isAbsent = isAbsent
    }

    /// A field has this value; null for one that is absent.
    public static func field(_ name: String, equals value: JSONValue) -> Self { Self(fields: [name: value]) }

    /// All of these fields have these values.
    public static func fields(_ values: JSONObject) -> Self { Self(fields: values) }

    /// Nobody has written to it since: its ``Document/revision`` is this.
    public static func revision(_ revision: Int) -> Self { Self(revision: revision) }

    /// There is no document with the id.
    public static let absent = Self(isAbsent: true)

    func holds(for document: Document?) -> Bool {
        guard let document, !isAbsent else { return isAbsent && document == nil }
        guard revision.map({ $0 == document.revision }) ?? true else { return false }
        return fields.allSatisfy { JSONOrder.areEqual(document.fields[$0.name], $0.value) }
    }

    /// Says what is there: of the fields that it names those that are not too large for an answer that is kept.
    func failure(_ id: DocumentID, _ document: Document?) -> CollectionError {
        var found = JSONObject()
        var room = 256
        for name in fields.names.sorted() {
            guard let value = document?.fields[name] else { continue }
            room -= name.utf8.count + value.byteCount
            guard room >= 0 else { break }
            found[name] = value
        }
        return .conditionFailed(id: id.text, revision: document?.revision, found: found)
    }
}
