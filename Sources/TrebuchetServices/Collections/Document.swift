/// A document as the server keeps it.
public struct Document: Codable, Sendable, Identifiable, Hashable {
    public let id: String
    /// What the app has put into it; null is the same as no field.
    public internal(set) var fields: JSONObject
    /// The id of the principal who created it; nil for somebody who was not signed in.
    public let creator: String?
    /// The number of the write that created it: the order of documents where a query asks for none.
    public let created: Int
    /// The number of the last write to it. Writes to a collection are counted.
    public internal(set) var revision: Int

    public init(id: String, fields: JSONObject, creator: String? = nil, created: Int = 0, revision: Int = 0) {
        self.id = id
        self.fields = fields.keeping { _, value in value != .null }
        self.creator = creator
        self.created = created
        self.revision = revision
    }

    /// The document's JSON.
    public var value: JSONValue { .object(fields) }

    /// About how many bytes of JSON it has.
    var byteCount: Int { id.utf8.count + value.byteCount }

    /// Sets fields; null removes one. The others stay, so that of two writes to one field the last counts.
    mutating func set(_ changes: JSONObject) {
        for (name, value) in changes { fields[name] = value == .null ? nil : value }
    }

    /// Adds to the array in a field what it does not have, or takes it out. Other values in it stay, whoever put them there.
    mutating func setLink(_ isLinked: Bool, _ field: String, _ target: JSONValue) {
        var targets: [JSONValue] = []
        if case .array(let present)? = fields[field] { targets = present }
        targets.removeAll { $0 == target && !isLinked }
        if isLinked, !targets.contains(target) { targets.append(target) }
        fields[field] = .array(targets)
    }

    /// The id that a document has at the server: that of an element in JSON. Nil when it is no text and no whole number.
    static func id(_ value: JSONValue?) -> String? {
        switch value {
        case .string(let text): text
        case .integer(let number): String(number)
        default: nil
        }
    }
}
