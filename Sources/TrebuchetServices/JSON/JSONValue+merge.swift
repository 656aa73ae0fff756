/// Merge patches (RFC 7396): an object that has the members which change, null for those that go.
extension JSONValue {
    /// This value as the patch makes it.
    func merging(_ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members = JSONObject()
        if case .object(let own) = self { members = own }
        for (name, change) in changes {
            members[name] = change == .null ? nil : (members[name] ?? .null).merging(change)
        }
        return .object(members)
    }

    /// The patch that makes this value the other; nil when none can: a patch has no way to say null, and only objects have
    /// members that can stay.
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

    /// Whether it is null, or a member of it is. Elements of arrays are no matter: a patch replaces arrays as a whole.
    private var hasNull: Bool {
        switch self {
        case .null: true
        case .object(let members): members.values.contains { $0.hasNull }
        default: false
        }
    }
}
