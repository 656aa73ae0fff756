internal import Platform
public import Trebuchet

/// Rules from a file, for the collections and the rooms of a server: `trebuchet serve --rules rules.json`.
///
///     let rules = try RuleBook(contentsOfFile: "rules.json")
///     CollectionHost.expose(on: server, store: store, rules: rules)
///     RoomHost.expose(on: server, rules: rules)
///
/// Of entries that match a name each member counts from the most precise one that has it; what none has is as without a file.
public struct RuleBook: Sendable {
    /// The most precise first.
    private let collectionPatterns: [CollectionEntry]
    /// Of whole names, with what the patterns say of them.
    private let collectionsByName: [ByteText: CollectionEntry]
    private let rooms: [RoomEntry]
    /// The roles that the file knows beside `guest` and `user`.
    public let roles: [String]
    /// What the file allows though hardly anybody means it, in the order of its lines: documents that can be created and that nobody
    /// can read; 100 at most. It counts all the same. Empty without a file.
    public internal(set) var warnings: [RuleProblem] = []
    /// What the file has, as it stands there.
    let ownCollections: [CollectionEntry]
    let ownRooms: [RoomEntry]

    /// How many entries it has for collections and for rooms.
    public let collectionCount: Int
    /// How many entries it has for rooms.
    public let roomCount: Int

    /// Rules as without a file.
    public init() { self.init(collections: [], rooms: [], roles: []) }

    init(collections: [CollectionEntry], rooms: [RoomEntry], roles: [String]) {
        let patterns = Self.inOrder(collections.filter { !$0.pattern.isName }, \.pattern)
        collectionPatterns = patterns
        var byName: [ByteText: CollectionEntry] = [:]
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

    /// The most precise first, equal ones as they stand in the file.
    private static func inOrder<Entry>(_ entries: [Entry], _ pattern: (Entry) -> NamePattern) -> [Entry] {
        entries.enumerated().sorted {
            let (one, other) = (pattern($0.element), pattern($1.element))
            if one.isName, other.isName { return one.text.utf8.count > other.text.utf8.count }
            return (other.precision, $0.offset) < (one.precision, $1.offset)
        }.map(\.element)
    }

    func collection(_ name: String) -> CollectionEntry {
        if let entry = collectionsByName[ByteText(name)] { return entry }
        return collectionPatterns.filter { $0.pattern.matches(name) }
            .reduce(CollectionEntry(NamePattern(name))) { $0.over($1) }.over(.serverDefault)
    }

    /// What counts for a room, whose name is `<type>-<id>`.
    func room(_ name: String) -> RoomEntry {
        rooms.filter { $0.includes(name) }.reduce(RoomEntry(NamePattern(name))) { $0.over($1) }
            .over(.serverDefault)
    }
}

extension CollectionEntry {
    /// What `CreatorRules` says.
    static let serverDefault: CollectionEntry = {
        var entry = CollectionEntry(NamePattern("*"))
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

extension RoomEntry {
    /// What `OpenRooms` says.
    static let serverDefault: RoomEntry = {
        var entry = RoomEntry(NamePattern("*"))
        entry.join = RoleSet([RoleSet.anyone])
        entry.list = RoleSet([RoleSet.nobody])
        entry.publish = RoleSet([RoleSet.anyone])
        return entry
    }()
}

extension RuleBook: CollectionRules {
    /// What the collection's entries say of an action.
    public func may(
        _ principal: Principal?, _ action: CollectionAction, _ document: Document, in collection: String
    ) -> Bool { self.collection(collection).admits(principal, action, document) }

    /// Throws `forbidden` with the rule that refuses the change, and the field when it is about one.
    public func check(
        _ principal: Principal?, _ change: DocumentChangeRequest, in collection: String
    ) throws(CollectionError) { try self.collection(collection).check(principal, change) }

    /// `everybody` where all may read. Else those share their queries whom a role lets read everything, and those who may read
    /// nothing; who reads some documents has queries of their own.
    public func readers(like principal: Principal?, in collection: String) -> ReaderGroup {
        self.collection(collection).readers(principal)
    }

    /// The given limits, with what the entries say in their place.
    public func limits(of collection: String, _ limits: CollectionLimits) -> CollectionLimits {
        self.collection(collection).limits(limits)
    }
}

extension RuleBook: RoomRules {
    /// What the room's entries say of `join`; without any, true.
    public func mayJoin(_ principal: Principal?, _ room: String) -> Bool {
        self.room(room).join?.admits(principal) == true
    }

    /// What the room's entries say of `list`; without any, false.
    public func mayList(_ principal: Principal?, _ room: String) -> Bool {
        self.room(room).list?.admits(principal) == true
    }

    /// What the room's entries say of `publish`; without any, true. The topic makes no difference.
    public func mayPublish(_ principal: Principal?, _ topic: String, in room: String) -> Bool {
        self.room(room).publish?.admits(principal) == true
    }

    /// What the room's entries say of `members`, or the server's limit.
    public func memberLimit(of room: String, _ limit: Int) -> Int { self.room(room).members ?? limit }
}
