internal import Platform
internal import Bytes
internal import Trebuchet
internal import TrebuchetWire

// trebuchet: TypeScript = { members: Record<string, { id: string; principal?: string; data: unknown }> }
/// The presences of a room's members, in the order in which members first showed one: the state that members observe.
///
/// In JSON it is an object with one member for each number: `{"members":{"7":{"id":"…","data":{…}}}}`. When a part of a
/// presence changes, only that part is sent.
struct Roster: Sendable, Equatable {
    struct Member: Sendable, Equatable {
        /// The identifier of the membership.
        let id: String
        /// The principal that is signed in over the member's connection, or nil.
        let principal: String?
        var data: JSONValue
    }

    private var byNumber: [Int: Member] = [:]
    private var numbers: [String: Int] = [:]
    private var lastNumber = 0
    /// For members that have changed since the last update: the presence that the observers have, or nil for a new member.
    private var sent: [Int: JSONValue?] = [:]

    static func == (one: Self, other: Self) -> Bool { one.byNumber == other.byNumber }

    /// The members, sorted by their numbers.
    var members: [Member] { byNumber.sorted { $0.key < $1.key }.map(\.value) }

    /// The presence of a membership, or nil.
    subscript(membershipID: String) -> JSONValue? { numbers[membershipID].flatMap { byNumber[$0]?.data } }

    /// Returns whether setting this presence would change nothing.
    func hasPresence(_ data: JSONValue?, of membershipID: String, _ principal: String?) -> Bool {
        let member = numbers[membershipID].flatMap { byNumber[$0] }
        return member?.data == data
            && (data == nil || member?.principal.map { ByteText($0) } == principal.map { ByteText($0) })
    }

    /// Sets the presence of a membership; nil removes it.
    mutating func set(_ data: JSONValue?, of membershipID: String, principal: String? = nil) {
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

    /// Above this number of bytes, a changed presence is sent in parts only when the parts are shorter than the whole.
    private static let smallestCut = 4 << 10

    private mutating func recordEventNumber(_ number: Int) {
        if sent[number] == nil { sent[number] = .some(byNumber[number]?.data) }
    }
}

extension Roster: DeltaState {
    mutating func takeChanges() -> StateChanges? {
        var changes = StateChanges()
        for (number, before) in sent.sorted(by: { $0.key < $1.key }) {
            let path = ["members", String(number)]
            switch (before, byNumber[number]) {
            case (nil, nil): break
            case (nil, let member?): changes.add(member, atPath: path)
            case (_?, nil): changes.remove(atPath: path)
            case (let before?, let member?):
                let path = path + ["data"]
                var room = max(Self.smallestCut, member.data.byteCount)
                if before.patchFits(to: member.data, at: 0, within: &room) {
                    changes.change(before, to: member.data, at: path)
                } else {
                    changes.replace(member.data, atPath: path)
                }
            }
        }
        sent = [:]
        return changes
    }

    mutating func apply(_ changes: StateChanges) throws {
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
        let value = operation.kind == .remove ? nil : try operation.value(as: JSONValue.self)
        guard byNumber[number]?.data.set(value, at: path[3...]) == true else {
            throw operation.error("the path does not exist")
        }
    }
}

extension StateChanges {
    /// Adds the operations that turn `before` into `after`: changed members of objects, and whole values otherwise.
    fileprivate mutating func change(_ before: JSONValue, to after: JSONValue, at path: [String]) {
        if case .object(let old) = before, case .object(let new) = after {
            change(old, to: new, at: path)
        } else if before != after {
            replace(after, atPath: path)
        }
    }

    private mutating func change(_ before: JSONObject, to after: JSONObject, at path: [String]) {
        _ = before.eachDifference(to: after) { name, _, new in
            if new == nil { remove(atPath: path + [CanonicalJSON.string(name)]) }
            return true
        }
        _ = before.eachDifference(to: after) { name, old, new in
            guard let new else { return true }
            let path = path + [CanonicalJSON.string(name)]
            if let old, CanonicalJSON.isObject(old), CanonicalJSON.isObject(new) {
                change(JSONObject(canonical: old), to: JSONObject(canonical: new), at: path)
            } else if old != nil {
                replace(EncodedJSON(canonical: new), atPath: path)
            } else {
                add(EncodedJSON(canonical: new), atPath: path)
            }
            return true
        }
    }
}

extension JSONValue {
    /// Bytes of an operation in addition to its path and value.
    fileprivate static let operationBytes = 64

    /// Returns whether the operations that turn this value into `other`, each with its full path, fit into `room` bytes.
    /// Subtracts their size from `room`, and stops once it is exceeded.
    fileprivate func patchFits(to other: JSONValue, at path: Int, within room: inout Int) -> Bool {
        guard case .object(let old) = self, case .object(let new) = other else {
            if self != other { room -= Self.operationBytes + path + other.byteCount }
            return room >= 0
        }
        return old.patchFits(to: new, at: path, within: &room)
    }

    /// Sets or removes the value at a path within objects; returns false when the path does not exist.
    fileprivate mutating func set(_ value: JSONValue?, at path: ArraySlice<String>) -> Bool {
        guard let name = path.first else {
            guard let value else { return false }
            self = value
            return true
        }
        guard case .object(var members) = self else { return false }
        if path.count == 1 {
            if value == nil, members[name] == nil { return false }
            members[name] = value
        } else {
            guard var part = members[name], part.set(value, at: path.dropFirst()) else { return false }
            members[name] = part
        }
        self = .object(members)
        return true
    }
}

extension JSONObject {
    fileprivate func patchFits(to other: JSONObject, at path: Int, within room: inout Int) -> Bool {
        eachDifference(to: other) { name, old, new in
            let path = path + Self.pathBytes(name)
            if let old, let new, CanonicalJSON.isObject(old), CanonicalJSON.isObject(new) {
                return JSONObject(canonical: old).patchFits(to: JSONObject(canonical: new), at: path, within: &room)
            }
            room -= JSONValue.operationBytes + path + (new?.count ?? 0)
            return room >= 0
        }
    }

    /// The bytes of a name in a JSON pointer, with `~` and `/` escaped.
    private static func pathBytes(_ name: UnsafeRawBufferPointer) -> Int {
        3 + name.count + name.count { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }
    }
}

extension Roster.Member: DirectJSON {
    init(json: inout JSONCursor, depth: Int) throws {
        var (id, principal, data): (String?, String?, JSONValue?)
        try json.eachMember(depth: depth) { json, name in
            switch name {
            case "id": id = try JSONValue(json: &json, depth: depth + 1).text
            case "principal": principal = try JSONValue(json: &json, depth: depth + 1).text
            case "data": data = try JSONValue(json: &json, depth: depth + 1)
            default: _ = try json.value(depth: depth + 1)
            }
        }
        guard let id, let data else { throw ValueError("a member of a room requires an id and data") }
        self.init(id: id, principal: principal, data: data)
    }

    func write(json: inout ByteBuffer) {
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
    init(json: inout JSONCursor, depth: Int) throws {
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

    func write(json: inout ByteBuffer) {
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

/// The response to a join.
struct RoomTicket: Codable, Sendable, Equatable {
    /// The identifier under which other members see the client.
    let membershipID: String
    /// A secret that the client sends when it joins again, to resume its membership.
    let token: String
    /// The position in the room's events at the join. The client receives all later events, even if it starts to observe them
    /// later.
    let events: EventPosition

    private enum CodingKeys: String, CodingKey { case membershipID = "session", token, events }
}
