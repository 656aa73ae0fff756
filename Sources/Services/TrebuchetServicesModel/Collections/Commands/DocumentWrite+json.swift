internal import Bytes

/// The JSON of commands, for clients in all languages: an object with one member, the name of the command.
///
///     {"update":{"id":"1","fields":{"done":true},"if":{"owner":"ada"}}}
extension DocumentWrite {
    init(_ value: JSONValue) throws(CollectionError) {
        self = try value.json.withUnsafeBytes { text in
            Result { () throws(CollectionError) in try DocumentWrite(canonical: text) }
        }.get()
    }

    init(canonical text: UnsafeRawBufferPointer) throws(CollectionError) {
        self = try Self.read(text, at: 0).write
    }

    /// Returns the write that begins at an index of a canonical text, and the index behind it.
    static func read(_ text: UnsafeRawBufferPointer, at start: Int) throws(CollectionError) -> (write: Self, end: Int) {
        let invalid = CollectionError.invalidDocument(
            "a command must be an object with one member, the name of the command")
        guard text[start] == UInt8(ascii: "{") else { throw invalid }
        var object = CanonicalMembers(text, of: start)
        guard let command = object.name else { throw invalid }
        let name = CanonicalJSON.string(command)
        guard object.isObject else {
            throw .invalidDocument("the command '\(name.prefix(bytes: 32))' requires an object")
        }
        let (members, end) = CommandMembers.read(name, text, at: object.value)
        object.advance(behind: end)
        guard object.name == nil else { throw invalid }
        return (try DocumentWrite(name, members), object.start + 1)
    }

    private static let names: Set = [
        "create", "update", "merge", "increment", "delete", "link", "unlink", "expire", "check",
    ]

    private init(_ name: String, _ members: CommandMembers) throws(CollectionError) {
        guard Self.names.contains(name) else { throw .invalidDocument("unknown command '\(name.prefix(bytes: 32))'") }
        var members = members
        let id = try members.id()
        let command: DocumentCommand
        switch name {
        case "create": command = .create(id: id, fields: try members.fields(), expiresIn: try members.duration())
        case "update": command = .update(id: id, fields: try members.fields())
        case "merge": command = .merge(id: id, fields: try members.fields())
        case "increment": command = .increment(id: id, field: try members.text("field"), by: try members.number("by"))
        case "delete": command = .delete(id: id)
        case "link":
            let (target, collection) = (try members.value("target"), try members.collection())
            guard collection == nil || Document.id(target) != nil else {
                throw .invalidDocument("the command 'link' with 'in' requires a 'target' that is an id")
            }
            command = .link(id: id, field: try members.text("field"), target: target, in: collection)
        case "unlink":
            command = .unlink(id: id, field: try members.text("field"), target: try members.value("target"))
        case "expire": command = .expire(id: id, expiresIn: try members.duration())
        default: command = .check(id: id)
        }
        self.init(command, if: try members.condition())
        try members.expectEnd()
    }

    var value: JSONValue {
        var text = ByteBuffer()
        append(to: &text)
        return JSONValue(canonical: text.bytes)
    }

    /// Appends the canonical text.
    func append(to text: inout ByteBuffer) {
        text.append("{\"" as StaticString)
        text.append(utf8: command.name)
        text.append("\":{" as StaticString)
        var isFirst = true
        eachMember { name, value in
            text.append((isFirst ? "\"" : ",\"") as StaticString)
            isFirst = false
            text.append(name)
            text.append("\":" as StaticString)
            value.write(json: &text)
        }
        text.append("}}" as StaticString)
    }

    /// Calls `body` with the members of the command in JSON, in the order of their names.
    private func eachMember(_ body: (StaticString, JSONValue) -> Void) {
        var (amount, duration, field, fields): (JSONValue?, Duration?, String?, JSONObject?)
        var (target, collection): (JSONValue?, String?)
        switch command {
        case .create(_, let members, let lifetime): (fields, duration) = (members, lifetime)
        case .update(_, let members), .merge(_, let members): fields = members
        case .increment(_, let name, let number): (field, amount) = (name, number)
        case .link(_, let name, let value, let other): (field, target, collection) = (name, value, other)
        case .unlink(_, let name, let value): (field, target) = (name, value)
        case .expire(_, let lifetime): duration = lifetime
        case .delete, .check: break
        }
        if let amount { body("by", amount) }
        if let duration { body("expiresIn", JSONValue(duration.seconds)) }
        if let field { body("field", .string(field)) }
        if let fields { body("fields", .object(fields)) }
        body("id", .string(command.id.text))
        if let condition {
            if !condition.fields.isEmpty { body("if", .object(condition.fields)) }
            if condition.isAbsent { body("ifAbsent", .bool(true)) }
            if let revision = condition.revision { body("ifRevision", .integer(Int64(revision))) }
        }
        if let collection { body("in", .string(collection)) }
        if let target { body("target", target) }
    }
}

/// The members of a command as text. Unknown members are an error, because a misspelled condition must not be ignored.
private struct CommandMembers {
    private struct Member {
        let name: UnsafeRawBufferPointer
        let value: UnsafeRawBufferPointer
        /// The index of an object, which is made while its end is found.
        let index: JSONObjectIndex?
    }

    private let command: String
    private var members: [Member] = []

    /// Returns the members of the object at an index, and the index behind it.
    static func read(_ command: String, _ text: UnsafeRawBufferPointer, at start: Int) -> (members: Self, end: Int) {
        var result = Self(command: command)
        var members = CanonicalMembers(text, of: start)
        while let name = members.name {
            var index: JSONObjectIndex?
            let end: Int
            if members.isObject {
                var found = JSONObjectIndex()
                end = members.value + found.scan(UnsafeRawBufferPointer(rebasing: text[members.value...]))
                index = found
            } else {
                end = members.valueEnd()
            }
            result.members.append(Member(name: name, value: members.value(to: end), index: index))
            members.advance(behind: end)
        }
        return (result, members.start + 1)
    }

    private init(command: String) { self.command = command }

    /// Returns the text of a member; nil when it is missing or null.
    private mutating func remove(_ name: StaticString) -> Member? {
        guard let index = members.firstIndex(where: { $0.name.isText(name) }) else { return nil }
        let member = members.remove(at: index)
        return CanonicalJSON.isNull(member.value) ? nil : member
    }

    private mutating func removeValue(_ name: StaticString) -> JSONValue? {
        remove(name).map { $0.index == nil ? JSONValue(canonical: $0.value) : .object(object($0)) }
    }

    private func object(_ member: Member) -> JSONObject {
        member.index.map { JSONObject(member.value, $0) } ?? JSONObject()
    }

    private func error(_ expected: String) -> CollectionError {
        .invalidDocument("the command '\(command)' requires \(expected)")
    }

    mutating func value(_ name: StaticString) throws(CollectionError) -> JSONValue {
        let count = members.count
        let value = removeValue(name)
        guard members.count < count else { throw error("a member '\(name)'") }
        return value ?? .null
    }

    mutating func id() throws(CollectionError) -> DocumentID {
        guard let id = Document.id(removeValue("id")) else { throw error("an 'id', a string or an integer") }
        return id
    }

    mutating func fields() throws(CollectionError) -> JSONObject {
        guard let fields = remove("fields"), fields.index != nil else { throw error("'fields', an object") }
        return object(fields)
    }

    mutating func text(_ name: StaticString) throws(CollectionError) -> String {
        guard case .string(let text)? = removeValue(name) else { throw error("'\(name)', a string") }
        return text
    }

    mutating func number(_ name: StaticString) throws(CollectionError) -> JSONValue {
        switch removeValue(name) {
        case .integer(let number)?: return .integer(number)
        case .number(let number)?: return .number(number)
        default: throw error("'\(name)', a number")
        }
    }

    mutating func collection() throws(CollectionError) -> String? {
        switch removeValue("in") {
        case nil: return nil
        case .string(let name)? where CollectionLimits.isName(name): return name
        default: throw error("'in', the name of a collection")
        }
    }

    /// Returns nil when the member is missing.
    mutating func duration() throws(CollectionError) -> Duration? {
        switch removeValue("expiresIn") {
        case nil: return nil
        case .integer(let seconds)? where abs(Double(seconds)) < 1e12: return .seconds(seconds)
        case .number(let seconds)? where abs(seconds) < 1e12: return .seconds(seconds)
        default: throw error("'expiresIn', a number of seconds")
        }
    }

    mutating func condition() throws(CollectionError) -> WriteCondition? {
        var fields = JSONObject()
        switch removeValue("if") {
        case nil: break
        case .object(let values)?: fields = values
        default: throw error("'if', an object of fields and their values")
        }
        var revision: Int?
        switch removeValue("ifRevision") {
        case nil: break
        case .integer(let number)?: revision = Int(number)
        default: throw error("'ifRevision', an integer")
        }
        var isAbsent = false
        switch removeValue("ifAbsent") {
        case nil: break
        case .bool(let bool)?: isAbsent = bool
        default: throw error("'ifAbsent', true or false")
        }
        guard !fields.isEmpty || revision != nil || isAbsent else { return nil }
        return WriteCondition(fields: fields, revision: revision, isAbsent: isAbsent)
    }

    func expectEnd() throws(CollectionError) {
        guard let other = members.first else { return }
        let name = CanonicalJSON.string(other.name).prefix(bytes: 32)
        throw .invalidDocument("the command '\(command)' has an unknown member '\(name)'")
    }
}

extension DocumentMutation {
    /// Decodes `{"number":7,"command":{…}}`, or `{"number":7,"commands":[{…},{…}]}` for several commands at once.
    init(_ value: JSONValue) throws(CollectionError) {
        self = try value.json.withUnsafeBytes { text in
            Result { () throws(CollectionError) in try DocumentMutation(canonical: text) }
        }.get()
    }

    package init(canonical text: UnsafeRawBufferPointer) throws(CollectionError) {
        let (number, writes) = try Self.read(text)
        self.init(number: number, writes: try writes.get())
    }

    /// Decodes a mutation. Its number is returned also when its commands are invalid.
    package static func read(_ text: UnsafeRawBufferPointer) throws(CollectionError) -> (
        number: Int, writes: Result<[DocumentWrite], CollectionError>
    ) {
        let noNumber = CollectionError.invalidDocument("the number of a mutation must be at least 1")
        guard CanonicalJSON.isObject(text) else { throw noNumber }
        var number: Int?
        var writes: Result<[DocumentWrite], CollectionError>?
        var hasOthers = false
        var members = CanonicalMembers(text, of: 0)
        while let name = members.name {
            // The index behind the value, unless it is invalid.
            var end: Int?
            if number == nil, name.isText("number") {
                let valueEnd = members.valueEnd()
                guard case .integer(let found) = JSONValue(canonical: members.value(to: valueEnd)), found > 0 else {
                    throw noNumber
                }
                (number, end) = (Int(found), valueEnd)
            } else if writes == nil, name.isText("command") {
                writes = Result { () throws(CollectionError) in
                    let (write, last) = try DocumentWrite.read(text, at: members.value)
                    end = last
                    return [write]
                }
            } else if writes == nil, name.isText("commands"), text[members.value] == UInt8(ascii: "[") {
                writes = Result { () throws(CollectionError) in
                    let (list, last) = try commands(text, at: members.value)
                    end = last
                    return list
                }
            } else {
                hasOthers = true
            }
            members.advance(behind: end ?? members.valueEnd())
        }
        guard let number else { throw noNumber }
        guard !hasOthers, let writes else {
            return (
                number,
                .failure(
                    .invalidDocument("a mutation requires a number, and a 'command' or an array of 'commands'"))
            )
        }
        return (number, writes)
    }

    /// Returns the commands of the array that begins at an index of a canonical text, and the index behind it.
    private static func commands(
        _ text: UnsafeRawBufferPointer, at start: Int
    ) throws(CollectionError) -> (writes: [DocumentWrite], end: Int) {
        var writes: [DocumentWrite] = []
        var at = start + 1
        while text[at] != UInt8(ascii: "]") {
            if text[at] == UInt8(ascii: ",") { at += 1 }
            guard writes.count < CollectionLimits.commandsPerTransaction else { break }
            let (write, end) = try DocumentWrite.read(text, at: at)
            writes.append(write)
            at = end
        }
        guard !writes.isEmpty else { throw .invalidDocument("'commands' requires at least one command") }
        guard text[at] == UInt8(ascii: "]") else {
            throw .tooManyCommands(limit: CollectionLimits.commandsPerTransaction)
        }
        return (writes, at + 1)
    }

    /// The nesting depth of a document inside the mutation.
    package static let depth = 4

    package var value: JSONValue {
        let number = JSONValue.integer(Int64(number))
        return writes.count == 1
            ? .object(["number": number, "command": writes[0].value])
            : .object(["number": number, "commands": .array(writes.map(\.value))])
    }
}

extension DocumentMutation: Codable {
    package init(from decoder: any Decoder) throws { try self.init(JSONValue(from: decoder)) }

    package func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
