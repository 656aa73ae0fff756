/// Entries that are right, and lock out whom they were written for.
extension RuleBook {
    /// The entry, and what becomes of it.
    typealias Trap = (member: String, message: String)

    /// Without an order.
    var traps: [Trap] { ownCollections.compactMap(trap) + ownRooms.compactMap(trap) }

    private func trap(_ own: CollectionEntry) -> Trap? {
        let entry = collection(own.pattern.someName)
        guard let create = entry.permissions[.create], let read = entry.permissions[.read] else { return nil }
        let member = "collections.\(own.pattern.text)"
        switch (create.roles.admitsNobody, read.roles.admitsNobody) {
        case (false, true):
            return (member, "documents can be created (\(create.roles.text)), and nobody can read them (\(read.rule))")
        case (true, true) where own.permissions[.create] == nil && own.permissions[.read] == nil && !own.pattern.isAny:
            return (member, "nobody can create documents (\(create.rule)) nor read them (\(read.rule))")
        case (false, false) where create.roles.admitsEverybody && read.roles.admitsCreatorAlone:
            let hint = "create them with '\(RoleSet.signedIn)', or let '\(RoleSet.noCreator)' read them"
            return (member, "what somebody creates who is not signed in, nobody can read (\(read.rule)); \(hint)")
        default: return nil
        }
    }

    private func trap(_ own: RoomEntry) -> Trap? {
        guard own.join == nil, !own.pattern.isAny, let join = room("\(own.pattern.someName)-x").join, join.admitsNobody
        else { return nil }
        return (
            "rooms.\(own.pattern.text)", "nobody can join: it has no 'join', and an entry for more rooms says 'nobody'"
        )
    }
}

extension NamePattern {
    /// A name that it matches.
    fileprivate var someName: String {
        text.split(separator: "*", omittingEmptySubsequences: false).joined(separator: "x")
    }
    fileprivate var isAny: Bool { text.allSatisfy { $0 == "*" } }
}

extension RoleSet {
    fileprivate var admitsNobody: Bool { names == [Self.nobody] }
    fileprivate var admitsCreatorAlone: Bool { names == [Self.creator] }
}
