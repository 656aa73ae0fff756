internal import Platform
public import Trebuchet

/// Rules from a file for the collections and rooms of a server: `trebuchet serve --rules rules.json`.
///
///     let rules = try RulesFile(contentsOfFile: "rules.json")
///     CollectionHost.expose(on: server, store: store, rules: rules)
///     RoomHost.expose(on: server, rules: rules)
///
/// When several entries match a name, each member is taken from the most precise entry that has it. A member that none has is
/// as without a file.
public struct RulesFile: Sendable {
    /// The entries with patterns, most precise first.
    private let collectionPatterns: [CollectionRuleEntry]
    /// The entries for single names, combined with the matching patterns.
    private let collectionsByName: [ByteText: CollectionRuleEntry]
    private let rooms: [RoomRuleEntry]
    /// The roles that the file declares in addition to `guest` and `user`.
    public let roles: [String]
    /// Valid but probably unintended rules, in the order of their lines: documents that can be created but not read. At most
    /// 100. The rules apply nevertheless. Empty without a file.
    public internal(set) var warnings: [RuleProblem] = []
    /// The entries as written in the file.
    let ownCollections: [CollectionRuleEntry]
    let ownRooms: [RoomRuleEntry]

    /// The number of entries for collections.
    public let collectionCount: Int
    /// The number of entries for rooms.
    public let roomCount: Int

    /// Creates the rules that apply without a file.
    public init() { self.init(collections: [], rooms: [], roles: []) }

    init(collections: [CollectionRuleEntry], rooms: [RoomRuleEntry], roles: [String]) {
        let patterns = Self.inOrder(collections.filter { !$0.pattern.isName }, \.pattern)
        collectionPatterns = patterns
        var byName: [ByteText: CollectionRuleEntry] = [:]
        for entry in collections where entry.pattern.isName {
            let name = entry.pattern.text
            byName[ByteText(name)] = patterns.filter { $0.pattern.matches(name) }.reduce(entry) { $0.over($1) }
                .over(.serverDefault)
        }
        collectionsByName = byName
        self.rooms = Self.inOrder(rooms, \.pattern)
        self.roles = roles
        ownCollections = collections
        ownRooms = rooms
        collectionCount = collections.count
        roomCount = rooms.count
    }

    /// Sorts entries, most precise first; equal ones keep the order of the file.
    private static func inOrder<Entry>(_ entries: [Entry], _ pattern: (Entry) -> NamePattern) -> [Entry] {
        entries.enumerated().sorted {
            let (one, other) = (pattern($0.element), pattern($1.element))
            if one.isName, other.isName { return one.text.utf8.count > other.text.utf8.count }
            return (other.precision, $0.offset) < (one.precision, $1.offset)
        }.map(\.element)
    }

    func collection(_ name: String) -> CollectionRuleEntry {
        if let entry = collectionsByName[ByteText(name)] { return entry }
        return collectionPatterns.filter { $0.pattern.matches(name) }
            .reduce(CollectionRuleEntry(NamePattern(name))) { $0.over($1) }.over(.serverDefault)
    }

    /// Returns the combined entry for a room `<type>-<id>`.
    func room(_ name: String) -> RoomRuleEntry {
        rooms.filter { $0.includes(name) }.reduce(RoomRuleEntry(NamePattern(name))) { $0.over($1) }
            .over(.serverDefault)
    }
}

extension CollectionRuleEntry {
    /// The equivalent of `CreatorRules`.
    static let serverDefault: CollectionRuleEntry = {
        var entry = CollectionRuleEntry(NamePattern("*"))
        let rule = "the server's default"
        entry.permissions = [
            .read: Permission(roles: RoleSet([RoleSet.anyone]), rule: rule),
            .create: Permission(roles: RoleSet([RoleSet.anyone]), rule: rule),
            .update: Permission(roles: RoleSet([RoleSet.creator, RoleSet.noCreator]), rule: rule),
            .delete: Permission(roles: RoleSet([RoleSet.creator, RoleSet.noCreator]), rule: rule),
        ]
        entry.allowsOtherFields = true
        return entry
    }()
}

extension RoomRuleEntry {
    /// The equivalent of `OpenRooms`.
    static let serverDefault: RoomRuleEntry = {
        var entry = RoomRuleEntry(NamePattern("*"))
        entry.join = RoleSet([RoleSet.anyone])
        entry.list = RoleSet([RoleSet.nobody])
        entry.publish = RoleSet([RoleSet.anyone])
        return entry
    }()
}

extension RulesFile: CollectionRules {
    /// Returns whether the collection's entries authorize an action.
    public func isAllowed(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool { self.collection(collection).admits(principal, action, document) }

    /// Throws `forbidden` with the rule that refuses the change, and the field when the rule is about one.
    public func validate(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError) { try self.collection(collection).check(principal, change) }

    /// Returns the callers with which a principal shares queries. It is `allCallers` when all callers may read. Otherwise
    /// callers share queries when a role authorizes them for all documents, or when they may read none. A caller that may read
    /// some documents has separate queries.
    public func readerGroup(for principal: Principal?, in collection: String) -> ReaderGroup {
        self.collection(collection).readers(principal)
    }

    /// Returns the given limits, with those of the entries in their place.
    public func limits(of collection: String, _ limits: CollectionLimits) -> CollectionLimits {
        self.collection(collection).limits(limits)
    }
}

extension RulesFile: RoomRules {
    /// Returns whether the room's entries authorize joins; without an entry, true.
    public func canJoin(_ principal: Principal?, _ room: String) -> Bool {
        self.room(room).join?.admits(principal) == true
    }

    /// Returns whether the room's entries authorize listing; without an entry, false.
    public func canList(_ principal: Principal?, _ room: String) -> Bool {
        self.room(room).list?.admits(principal) == true
    }

    /// Returns whether the room's entries authorize publishing, to any topic; without an entry, true.
    public func canPublish(_ principal: Principal?, _ topic: String, in room: String) -> Bool {
        self.room(room).publish?.admits(principal) == true
    }

    /// Returns the maximum number of members from the room's entries, or the server's limit.
    public func memberLimit(of room: String, _ limit: Int) -> Int { self.room(room).members ?? limit }
}
