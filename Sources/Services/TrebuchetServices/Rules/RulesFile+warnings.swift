/// Valid entries that exclude the callers they were written for.
extension RulesFile {
    /// The entry, and its consequence.
    typealias Trap = (member: String, message: String)

    /// The traps, unordered.
    var traps: [Trap] { ownCollections.compactMap(trap) + ownRooms.compactMap(trap) }

    private func trap(_ own: CollectionRuleEntry) -> Trap? {
        let entry = collection(own.pattern.someName)
        guard let create = entry.permissions[.create], let read = entry.permissions[.read] else { return nil }
        let member = "collections.\(own.pattern.text)"
        switch (create.roles.admitsNone, read.roles.admitsNone) {
        case (false, true):
            return (
                member, "documents can be created (\(create.roles.text)), but no client can read them (\(read.rule))"
            )
        case (true, true) where own.permissions[.create] == nil && own.permissions[.read] == nil && !own.pattern.isAny:
            return (member, "no client can create documents (\(create.rule)) or read them (\(read.rule))")
        case (false, false) where create.roles.admitsAllCallers && read.roles.admitsCreatorOnly:
            let hint = "set create to '\(RoleSet.signedIn)', or add '\(RoleSet.noCreator)' to read"
            return (
                member, "documents of clients that are not signed in can be read by no client (\(read.rule)); \(hint)"
            )
        default: return nil
        }
    }

    private func trap(_ own: RoomRuleEntry) -> Trap? {
        guard own.join == nil, !own.pattern.isAny, let join = room("\(own.pattern.someName)-x").join, join.admitsNone
        else { return nil }
        return (
            "rooms.\(own.pattern.text)", "no client can join: 'join' is absent, and a more general entry has 'nobody'"
        )
    }
}

extension NamePattern {
    /// Returns a name that the pattern matches.
    fileprivate var someName: String {
        text.split(separator: "*", omittingEmptySubsequences: false).joined(separator: "x")
    }
    fileprivate var isAny: Bool { text.allSatisfy { $0 == "*" } }
}

extension RoleSet {
    fileprivate var admitsNone: Bool { names == [Self.nobody] }
    fileprivate var admitsCreatorOnly: Bool { names == [Self.creator] }
}
