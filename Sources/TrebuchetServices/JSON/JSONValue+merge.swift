/// Merge patches (RFC 7396): objects with the changed members, and null for removed members.
extension JSONValue {
    /// Returns this value with the patch applied.
    func merging(_ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members = JSONObject()
        if case .object(let own) = self { members = own }
        for (name, change) in changes {
            members[name] = change == .null ? nil : (members[name] ?? .null).merging(change)
        }
        return .object(members)
    }

    /// Returns the patch that turns this value into `other`, or nil when there is none: a patch cannot set null, and only
    /// objects can be patched in part.
    func mergePatch(to other: JSONValue) -> JSONValue? {
        guard case .object(let before) = self, case .object(let after) = other else { return nil }
        var changes = JSONObject()
        for (name, value) in after where before[name] != value {
            if let old = before[name], case .object = old, case .object = value {
                guard let change = old.mergePatch(to: value) else { return nil }
                changes[name] = change
            } else {
                guard !value.hasNull else { return nil }
                changes[name] = value
            }
        }
        for name in before.names where after[name] == nil { changes[name] = .null }
        return .object(changes)
    }

    /// True when the value or one of its members is null. Array elements do not count: a patch replaces arrays as a whole.
    private var hasNull: Bool {
        switch self {
        case .null: true
        case .object(let members): members.values.contains { $0.hasNull }
        default: false
        }
    }
}
