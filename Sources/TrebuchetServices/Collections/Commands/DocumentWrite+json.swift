internal import Bytes

/// The JSON of commands, for clients in all languages: an object with one member, the name of the command.
///
///     {"update":{"id":"1","fields":{"done":true},"if":{"owner":"ada"}}}
extension DocumentWrite {
    init(_ value: JSONValue) throws(CollectionError) {
        guard case .object(let object) = value, object.count == 1, let (name, parameters) = object.sorted.first else {
            throw .invalidDocument("a command must be an object with one member, the name of the command")
        }
        var members = try CommandMembers(name, parameters)
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
        var members: JSONObject = ["id": .string(command.id.text)]
        switch command {
        case .create(_, let fields, let duration):
            members["fields"] = .object(fields)
            members["expiresIn"] = duration.map { JSONValue($0.seconds) }
        case .update(_, let fields): members["fields"] = .object(fields)
        case .merge(_, let fields): members["fields"] = .object(fields)
        case .increment(_, let field, let amount):
            (members["field"], members["by"]) = (.string(field), amount)
        case .link(_, let field, let target, let collection):
            (members["field"], members["target"]) = (.string(field), target)
            members["in"] = collection.map { .string($0) }
        case .unlink(_, let field, let target):
            (members["field"], members["target"]) = (.string(field), target)
        case .expire(_, let duration):
            members["expiresIn"] = duration.map { JSONValue($0.seconds) }
        case .delete, .check: break
        }
        if let condition {
            if !condition.fields.isEmpty { members["if"] = .object(condition.fields) }
            members["ifRevision"] = condition.revision.map { .integer(Int64($0)) }
            if condition.isAbsent { members["ifAbsent"] = .bool(true) }
        }
        return .object([command.name: .object(members)])
    }
}

/// The members of a command. Unknown members are an error, because a misspelled condition must not be ignored.
private struct CommandMembers {
    private let command: String
    private var members: JSONObject

    init(_ command: String, _ value: JSONValue) throws(CollectionError) {
        guard case .object(let members) = value else {
            throw .invalidDocument("the command '\(command.prefix(bytes: 32))' requires an object")
        }
        self.command = command
        self.members = members
    }

    private mutating func removeValue(_ name: String) -> JSONValue? {
        defer { members[name] = nil }
        return members[name] == .null ? nil : members[name]
    }

    private func error(_ expected: String) -> CollectionError {
        .invalidDocument("the command '\(command)' requires \(expected)")
    }

    mutating func value(_ name: String) throws(CollectionError) -> JSONValue {
        guard members[name] != nil else { throw error("a member '\(name)'") }
        return removeValue(name) ?? .null
    }

    mutating func id() throws(CollectionError) -> DocumentID {
        guard let id = Document.id(removeValue("id")) else { throw error("an 'id', a string or an integer") }
        return id
    }

    mutating func fields() throws(CollectionError) -> JSONObject {
        guard case .object(let fields)? = removeValue("fields") else { throw error("'fields', an object") }
        return fields
    }

    mutating func text(_ name: String) throws(CollectionError) -> String {
        guard case .string(let text)? = removeValue(name) else { throw error("'\(name)', a string") }
        return text
    }

    mutating func number(_ name: String) throws(CollectionError) -> JSONValue {
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
        if let other = members.sorted.first {
            throw .invalidDocument("the command '\(command)' has an unknown member '\(other.name.prefix(bytes: 32))'")
        }
    }
}

extension DocumentMutation {
    /// Decodes `{"number":7,"command":{…}}`, or `{"number":7,"commands":[{…},{…}]}` for several commands at once.
    init(_ value: JSONValue) throws(CollectionError) {
        let number = try Self.number(of: value)
        guard case .object(let object) = value else { throw .invalidDocument("a mutation must be an object") }
        switch (object["command"], object["commands"], object.count) {
        case (let command?, nil, 2): self.init(number: number, writes: [try DocumentWrite(command)])
        case (nil, .array(let commands)?, 2):
            guard (1...CollectionLimits.commandsPerTransaction).contains(commands.count) else {
                throw .tooManyCommands(limit: CollectionLimits.commandsPerTransaction)
            }
            var writes: [DocumentWrite] = []
            for command in commands { writes.append(try DocumentWrite(command)) }
            self.init(number: number, writes: writes)
        default: throw .invalidDocument("a mutation requires a number, and a 'command' or an array of 'commands'")
        }
    }

    /// The nesting depth of a document inside the mutation.
    static let depth = 4

    static func number(of value: JSONValue) throws(CollectionError) -> Int {
        guard case .object(let object) = value, case .integer(let number)? = object["number"], number > 0 else {
            throw .invalidDocument("the number of a mutation must be at least 1")
        }
        return Int(number)
    }

    var value: JSONValue {
        let number = JSONValue.integer(Int64(number))
        return writes.count == 1
            ? .object(["number": number, "command": writes[0].value])
            : .object(["number": number, "commands": .array(writes.map(\.value))])
    }
}

extension DocumentMutation: Codable {
    init(from decoder: any Decoder) throws { try self.init(JSONValue(from: decoder)) }

    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
