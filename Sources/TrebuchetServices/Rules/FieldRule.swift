internal import Trebuchet

/// What a field of a document may be, and who may write it.
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

        /// `a string`
        var text: String { [.array, .integer, .object].contains(self) ? "an \(rawValue)" : "a \(rawValue)" }
    }

    /// `collections.todos.fields.title`
    let rule: String
    let name: String
    var kind: Kind?
    var isRequired = false
    /// Once it is there, it stays as it is.
    var isImmutable = false
    /// Of a string in Unicode scalars, of an array in elements.
    var longest: Int?
    var values: [JSONValue]?
    /// Who may set, change and remove it; nil for everybody who may write the document.
    var writers: RoleSet?

    init(_ rule: String, name: String) {
        self.rule = rule
        self.name = name
    }

    /// Whether a change does to the field what may be done. What it leaves as it is, is not looked at: that may be what older
    /// rules let in.
    func check(_ principal: Principal?, _ change: DocumentChangeRequest) throws(CollectionError) {
        let (before, after) = (change.before?.fields[name], change.after?.fields[name])
        if after == nil, isRequired, before != nil || change.before == nil {
            throw .invalidDocument("field '\(name)' is required (\(rule).required)")
        }
        guard before != after else { return }
        if let writers, !writers.admits(principal, change.document) {
            throw change.forbidden("field '\(name)' is written by: \(writers.text) (\(rule).write)")
        }
        if isImmutable, before != nil {
            throw change.forbidden("field '\(name)' stays as it was set (\(rule).immutable)")
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
                return "has \(text.unicodeScalars.count) characters; \(longest) are allowed (\(rule).maxLength)"
            case .array(let elements) where elements.count > longest:
                return "has \(elements.count) elements; \(longest) are allowed (\(rule).maxLength)"
            default: break
            }
        }
        return nil
    }
}
