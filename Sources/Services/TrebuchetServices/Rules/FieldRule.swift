internal import Platform
internal import Trebuchet

/// A rule for one field of documents: its type and values, and its writers.
struct FieldRule: Sendable, Hashable {
    enum Kind: String, Sendable, CaseIterable {
        case string, number, integer, boolean, array, object

        func includes(_ value: JSONValue) -> Bool {
            switch (self, value) {
            case (.string, .string), (.boolean, .bool), (.array, .array), (.object, .object), (.integer, .integer),
                (.number, .integer), (.number, .number):
                true
            default: false
            }
        }

        /// The type with its article: `a string`.
        var text: String { [.array, .integer, .object].contains(self) ? "an \(rawValue)" : "a \(rawValue)" }
    }

    /// The member of the file: `collections.todos.fields.title`.
    let rule: String
    let name: String
    var kind: Kind?
    var isRequired = false
    /// True when the field cannot change once it is set.
    var isImmutable = false
    /// The maximum length: Unicode scalars of a string, elements of an array.
    var longest: Int?
    var values: [JSONValue]?
    /// The roles that may set, change and remove the field; nil for all callers that may write the document.
    var writers: RoleSet?

    init(_ rule: String, name: String) {
        self.rule = rule
        self.name = name
    }

    /// Validates a change of the field. An unchanged field is not validated: older rules may have admitted its value.
    func check(_ principal: Principal?, _ change: DocumentChangeRequest) throws(CollectionError) {
        let (before, after) = (change.before?.fields[name], change.after?.fields[name])
        if after == nil, isRequired, before != nil || change.before == nil {
            throw .invalidDocument("field '\(name)' is required (\(rule).required)")
        }
        guard before != after else { return }
        if let writers, !writers.admits(principal, change.document) {
            throw change.forbidden("field '\(name)' may be written only by: \(writers.text) (\(rule).write)")
        }
        if isImmutable, before != nil {
            throw change.forbidden("field '\(name)' is immutable (\(rule).immutable)")
        }
        if let after, let problem = problem(with: after) {
            throw .invalidDocument("field '\(name)' \(problem)")
        }
    }

    private func problem(with value: JSONValue) -> String? {
        if let kind, !kind.includes(value) { return "must be \(kind.text) (\(rule).type)" }
        if let values, !values.contains(value) {
            let list = values.prefix(16).map { String(decoding: $0.json, as: UTF8.self) }.joined(separator: ", ")
            return "must be one of \(list)\(values.count > 16 ? ", …" : "") (\(rule).enum)"
        }
        if let longest {
            switch value {
            case .string(let text) where text.unicodeScalars.count > longest:
                let count = text.unicodeScalars.count
                return "has \(count.counted("character")); the limit is \(longest) (\(rule).maxLength)"
            case .array(let elements) where elements.count > longest:
                return "has \(elements.count.counted("element")); the limit is \(longest) (\(rule).maxLength)"
            default: break
            }
        }
        return nil
    }
}
