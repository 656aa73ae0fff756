internal import Platform

/// Entries of collections and rooms.
extension RuleReader {
    mutating func collection(_ pattern: NamePattern, _ value: RuleValue, _ path: String) -> CollectionRuleEntry {
        var entry = CollectionRuleEntry(pattern)
        let known = ["read", "create", "update", "delete", "fields", "otherFields", "limits"]
        let members = members(of: value, path, known)
        for action in CollectionAction.allCases {
            let rule = "\(path).\(action)"
            let roles = roles(members[action.rawValue], rule, isOfDocument: action != .create)
            entry.permissions[action] = roles.map { CollectionRuleEntry.Permission(roles: $0, rule: rule) }
        }
        if let value = members["fields"] { entry.fields = fields(value, "\(path).fields") }
        entry.allowsOtherFields = bool(members["otherFields"], "\(path).otherFields")
        if entry.allowsOtherFields == false { entry.closedBy = "\(path).otherFields" }
        if let value = members["limits"] { readLimits(value, "\(path).limits", &entry) }
        return entry
    }

    private mutating func readLimits(_ value: RuleValue, _ path: String, _ entry: inout CollectionRuleEntry) {
        let known = ["documents", "bytes", "documentBytes", "writesPerSecond", "writesAtOnce"]
        let members = members(of: value, path, known)
        entry.documents = count(members["documents"], "\(path).documents")
        entry.bytes = count(members["bytes"], "\(path).bytes")
        entry.documentBytes = count(members["documentBytes"], "\(path).documentBytes")
        entry.writesPerSecond = rate(members["writesPerSecond"], "\(path).writesPerSecond")
        entry.writesAtOnce = count(members["writesAtOnce"], "\(path).writesAtOnce")
    }

    private mutating func fields(_ value: RuleValue, _ path: String) -> [FieldRule] {
        // Field names may be any string and are compared by their bytes.
        allMembers(of: value, path).map { field($0.name, $0.value, "\(path).\(Self.excerpt(of: $0.name))") }.sorted {
            $0.name.precedesInBytes($1.name)
        }
    }

    private mutating func field(_ name: String, _ value: RuleValue, _ path: String) -> FieldRule {
        var field = FieldRule(path, name: name)
        let known = ["type", "required", "immutable", "maxLength", "enum", "write"]
        let members = members(of: value, path, known)
        if let kind = members["type"] { field.kind = fieldKind(kind, "\(path).type") }
        field.isRequired = bool(members["required"], "\(path).required") ?? false
        field.isImmutable = bool(members["immutable"], "\(path).immutable") ?? false
        field.longest = count(members["maxLength"], "\(path).maxLength", from: 0)
        field.writers = roles(members["write"], "\(path).write", isOfDocument: true)
        if let length = members["maxLength"], let kind = field.kind, kind != .string, kind != .array {
            recordError(length.offset, "\(path).maxLength", "requires a string or an array, and this is \(kind.text)")
        }
        if let values = members["enum"] { field.values = fieldValues(values, field.kind, "\(path).enum") }
        return field
    }

    private mutating func fieldKind(_ value: RuleValue, _ path: String) -> FieldRule.Kind? {
        let known = FieldRule.Kind.allCases.map(\.rawValue)
        let name = try? value.json.string
        guard let name, let kind = FieldRule.Kind(rawValue: name) else {
            var hint = "known types are \(known.joined(separator: ", "))"
            var what = "must be the name of a type"
            if let name {
                what = "'\(Self.excerpt(of: name))' is not a type"
                hint = Self.hint(name, known) ?? hint
            }
            recordError(value.offset, path, "\(what); \(hint)")
            return nil
        }
        return kind
    }

    private mutating func fieldValues(_ value: RuleValue, _ kind: FieldRule.Kind?, _ path: String) -> [JSONValue]? {
        guard let elements = value.elements, !elements.isEmpty else {
            recordError(value.offset, path, "must be an array of the allowed values")
            return nil
        }
        return elements.compactMap { element in
            do {
                let value = try element.json
                if value == .null {
                    recordError(element.offset, path, "null is not allowed; for an optional field omit 'required'")
                } else if let kind, !kind.includes(value) {
                    recordError(element.offset, path, "has a value that is not \(kind.text)")
                }
                return value
            } catch {
                recordError(element.offset, path, "\(error)")
                return nil
            }
        }
    }

    mutating func room(_ pattern: NamePattern, _ value: RuleValue, _ path: String) -> RoomRuleEntry {
        var entry = RoomRuleEntry(pattern)
        let members = members(of: value, path, ["join", "list", "publish", "members"])
        entry.join = roles(members["join"], "\(path).join", isOfDocument: false)
        entry.list = roles(members["list"], "\(path).list", isOfDocument: false)
        entry.publish = roles(members["publish"], "\(path).publish", isOfDocument: false)
        entry.members = count(members["members"], "\(path).members")
        return entry
    }
}
