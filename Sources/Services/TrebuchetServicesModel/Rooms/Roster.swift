internal import Platform
package import Bytes
package import Deltas
package import TrebuchetWire

// trebuchet: TypeScript = { members: Record<string, { id: string; principal?: string; data: unknown }> }
/// The presences of a room's members, in the order in which members first showed one: the state that members observe.
///
/// In JSON it is an object with one member for each number: `{"members":{"7":{"id":"…","data":{…}}}}`. When a part of a
/// presence changes, only that part is sent.
package struct Roster: Sendable, Equatable {
    package struct Member: Sendable, Equatable {
        /// The identifier of the membership.
        package let id: String
        /// The principal that is signed in over the member's connection, or nil.
        package let principal: String?
        package var data: StoredJSON
    }

    private var byNumber: [Int: Member] = [:]
    private var numbers: [String: Int] = [:]
    private var lastNumber = 0
    /// For members that have changed since the last update: the presence that the observers have, or nil for a new member.
    private var sent: [Int: StoredJSON?] = [:]

    package init() {}

    package static func == (one: Self, other: Self) -> Bool { one.byNumber == other.byNumber }

    /// The members, sorted by their numbers.
    package var members: [Member] { byNumber.sorted { $0.key < $1.key }.map(\.value) }

    /// The presence of a membership, or nil.
    package subscript(membershipID: String) -> StoredJSON? { numbers[membershipID].flatMap { byNumber[$0]?.data } }

    /// Returns whether setting this presence would change nothing.
    package func hasPresence(_ data: StoredJSON?, of membershipID: String, _ principal: String?) -> Bool {
        let member = numbers[membershipID].flatMap { byNumber[$0] }
        return member?.data == data
            && (data == nil || member?.principal.map { ByteText($0) } == principal.map { ByteText($0) })
    }

    /// Sets the presence of a membership; nil removes it.
    package mutating func set(_ data: StoredJSON?, of membershipID: String, principal: String? = nil) {
        let known = numbers[membershipID]
        guard let data else {
            guard let known else { return }
            recordEventNumber(known)
            byNumber[known] = nil
            numbers[membershipID] = nil
            // The observers have never received this member.
            if case .some(.none) = sent[known] { sent[known] = nil }
            return
        }
        // A member that has signed in since gets a new number, because the principal of an entry never changes.
        if let known, byNumber[known]?.principal.map({ ByteText($0) }) != principal.map({ ByteText($0) }) {
            set(nil, of: membershipID)
        }
        let number = numbers[membershipID] ?? lastNumber + 1
        recordEventNumber(number)
        lastNumber = max(lastNumber, number)
        numbers[membershipID] = number
        byNumber[number] = Member(id: membershipID, principal: principal, data: data)
    }

    private mutating func recordEventNumber(_ number: Int) {
        if sent[number] == nil { sent[number] = .some(byNumber[number]?.data) }
    }
}

extension Roster: DeltaState {
    package mutating func takeChanges() -> StateChanges? {
        var changes = StateChanges()
        for (number, before) in sent.sorted(by: { $0.key < $1.key }) {
            let path = ["members", String(number)]
            switch (before, byNumber[number]) {
            case (nil, nil): break
            case (nil, let member?): changes.add(member, atPath: path)
            case (_?, nil): changes.remove(atPath: path)
            case (let before?, let member?):
                changes.change(before, to: member.data, at: path + ["data"])
            }
        }
        sent = [:]
        return changes
    }

    package mutating func apply(_ changes: StateChanges) throws {
        var changed = self
        for operation in changes.operations { try changed.apply(operation) }
        self = changed
    }

    private mutating func apply(_ operation: StateChanges.Operation) throws {
        let path = operation.path
        guard !path.isEmpty else {
            guard operation.kind == .replace else { throw operation.error("the document root can only be replaced") }
            return self = try operation.value(as: Roster.self)
        }
        guard path.count >= 2, path[0] == "members", let number = Int(path[1]) else {
            throw operation.error("the path does not exist")
        }
        if path.count == 2 {
            let member = operation.kind == .remove ? nil : try operation.value(as: Member.self)
            if let before = byNumber[number] { numbers[before.id] = nil }
            byNumber[number] = member
            if let member { numbers[member.id] = number }
            lastNumber = max(lastNumber, number)
            return
        }
        guard path[2] == "data", byNumber[number] != nil else { throw operation.error("the path does not exist") }
        let value = operation.kind == .remove ? nil : try operation.value(as: StoredJSON.self)
        guard let data = byNumber[number]?.data.setting(value, at: path[3...]) else {
            throw operation.error("the path does not exist")
        }
        byNumber[number]?.data = data
    }
}

extension StateChanges {
    /// The bytes of an operation in addition to its path and value.
    private static let operationBytes = 64
    /// Above this number of bytes, a changed presence is sent in parts only when the parts are shorter than the whole.
    private static let smallestCut = 4 << 10

    /// Adds the operations that turn `before` into `after`: changed members of objects, or the whole when that is shorter.
    fileprivate mutating func change(_ before: StoredJSON, to after: StoredJSON, at path: [String]) {
        guard before != after else { return }
        guard let old = before.object, let new = after.object else { return replace(after, atPath: path) }
        var parts: [(path: [String], isNew: Bool, value: EncodedJSON?)] = []
        var room = max(Self.smallestCut, after.byteCount)
        let fits = old.eachDifference(to: new) { names, old, new in
            room -= Self.operationBytes + (new?.count ?? 0) + names.reduce(0) { $0 + Self.pathBytes($1) }
            guard room >= 0 else { return false }
            parts.append((names.map { CanonicalJSON.string($0) }, old == nil, new.map { EncodedJSON(canonical: $0) }))
            return true
        }
        guard fits else { return replace(after, atPath: path) }
        // Of the members of one object, those that are removed come first.
        if parts.contains(where: { $0.value == nil }) {
            let inOrder = parts.enumerated().sorted { one, other in
                let depth = zip(one.element.path, other.element.path).prefix { $0.isSameBytes(as: $1) }.count
                let (isRemoved, isOtherRemoved) = (
                    one.element.value == nil && one.element.path.count == depth + 1,
                    other.element.value == nil && other.element.path.count == depth + 1
                )
                return isRemoved == isOtherRemoved ? one.offset < other.offset : isRemoved
            }
            parts = inOrder.map(\.element)
        }
        for part in parts {
            let path = path + part.path
            switch part.value {
            case nil: remove(atPath: path)
            case let value? where part.isNew: add(value, atPath: path)
            case let value?: replace(value, atPath: path)
            }
        }
    }

    /// The bytes of a name in a JSON pointer, with `~` and `/` escaped.
    private static func pathBytes(_ name: UnsafeRawBufferPointer) -> Int {
        3 + name.count + name.count { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }
    }
}

extension Roster.Member: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        var (id, principal, data): (String?, String?, StoredJSON?)
        try json.eachMember(depth: depth) { json, name in
            switch name {
            case "id": id = try JSONValue(json: &json, depth: depth + 1).textOrNull
            case "principal": principal = try JSONValue(json: &json, depth: depth + 1).textOrNull
            case "data": data = try StoredJSON(json: &json, depth: depth + 1)
            default: _ = try json.value(depth: depth + 1)
            }
        }
        guard let id, let data else { throw ValueError("a member of a room requires an id and data") }
        self.init(id: id, principal: principal, data: data)
    }

    package func write(json: inout ByteBuffer) {
        json.append(#"{"id":"# as StaticString)
        JSONString.append(id, to: &json)
        if let principal {
            json.append(#","principal":"# as StaticString)
            JSONString.append(principal, to: &json)
        }
        json.append(#","data":"# as StaticString)
        data.write(json: &json)
        json.append(UInt8(ascii: "}"))
    }
}

extension Roster: DirectJSON {
    package init(json: inout JSONCursor, depth: Int) throws {
        var roster = Roster()
        try json.eachMember(depth: depth) { json, name in
            guard name == "members" else { return _ = try json.value(depth: depth + 1) }
            try json.eachMember(depth: depth + 1) { json, name in
                guard let number = Int(name) else {
                    throw ValueError("'\(name.prefix(bytes: 32))' is not the number of a member")
                }
                let member = try Member(json: &json, depth: depth + 2)
                roster.byNumber[number] = member
                roster.numbers[member.id] = number
                roster.lastNumber = max(roster.lastNumber, number)
            }
        }
        self = roster
    }

    package func write(json: inout ByteBuffer) {
        json.append(#"{"members":{"# as StaticString)
        var isFirst = true
        for (number, member) in byNumber.sorted(by: { $0.key < $1.key }) {
            json.append((isFirst ? "\"" : ",\"") as StaticString)
            json.append(decimal: Int64(number))
            json.append("\":" as StaticString)
            member.write(json: &json)
            isFirst = false
        }
        json.append("}}" as StaticString)
    }
}

extension Roster.Member: Codable {}
extension Roster: Codable {}
