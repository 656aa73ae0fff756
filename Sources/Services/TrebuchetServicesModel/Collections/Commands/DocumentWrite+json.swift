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
        let commands = CommandMembers.members(text)
        guard let commands, commands.count == 1 else {
            throw .invalidDocument("a command must be an object with one member, the name of the command")
        }
        let name = CanonicalJSON.string(commands[0].name)
        var members = try CommandMembers(name, commands[0].value)
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
        case "check": command = .check(id: id)
        default: throw .invalidDocument("unknown command '\(name.prefix(bytes: 32))'")
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
    typealias Member = (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)

    private let command: String
    private var members: [Member]

    /// Returns the members of an object; nil for any other value.
    static func members(_ text: UnsafeRawBufferPointer) -> [Member]? {
        guard CanonicalJSON.isObject(text) else { return nil }
        var members: [Member] = []
        CanonicalJSON.eachMember(of: text) { members.append(($0, $1)) }
        return members
    }

    init(_ command: String, _ text: UnsafeRawBufferPointer) throws(CollectionError) {
        guard let members = Self.members(text) else {
            throw .invalidDocument("the command '\(command.prefix(bytes: 32))' requires an object")
        }
        self.command = command
        self.members = members
    }

    /// Returns the text of a member; nil when it is missing or null.
    private mutating func removeText(_ name: StaticString) -> UnsafeRawBufferPointer? {
        let name = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard let index = members.firstIndex(where: { $0.name.hasSameBytes(name) }) else { return nil }
        let value = members.remove(at: index).value
        return CanonicalJSON.isNull(value) ? nil : value
    }

    private mutating func removeValue(_ name: StaticString) -> JSONValue? {
        removeText(name).map { JSONValue(canonical: $0) }
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
        guard let fields = removeText("fields"), CanonicalJSON.isObject(fields) else {
            throw error("'fields', an object")
        }
        return JSONObject(canonical: fields)
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
        let number = try Self.number(canonical: text)
        let (command, commands) = (Self.member("command", of: text), Self.member("commands", of: text))
        var count = 0
        CanonicalJSON.eachMember(of: text) { _, _ in count += 1 }
        switch (command, commands, count) {
        case (let command?, nil, 2): self.init(number: number, writes: [try DocumentWrite(canonical: command)])
        case (nil, let commands?, 2) where JSONOrder.kind(commands) == .array:
            var texts: [UnsafeRawBufferPointer] = []
            CanonicalJSON.eachElement(of: commands) { texts.append($0) }
            guard (1...CollectionLimits.commandsPerTransaction).contains(texts.count) else {
                throw .tooManyCommands(limit: CollectionLimits.commandsPerTransaction)
            }
            var writes: [DocumentWrite] = []
            for text in texts { writes.append(try DocumentWrite(canonical: text)) }
            self.init(number: number, writes: writes)
        default: throw .invalidDocument("a mutation requires a number, and a 'command' or an array of 'commands'")
        }
    }

    private static func member(_ name: StaticString, of text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        CanonicalJSON.member(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), of: text)
    }

    /// The nesting depth of a document inside the mutation.
    package static let depth = 4

    package static func number(canonical text: UnsafeRawBufferPointer) throws(CollectionError) -> Int {
        guard let number = member("number", of: text), case .integer(let number) = JSONValue(canonical: number),
            number > 0
        else { throw .invalidDocument("the number of a mutation must be at least 1") }
        return Int(number)
    }

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
