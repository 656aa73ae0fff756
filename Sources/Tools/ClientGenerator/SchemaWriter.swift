/// Writes a model as JSON; Docs/Reference/Generator.md has the form.
struct SchemaWriter {
    let model: ClientModel

    func file() -> String {
        let used = model.sortedDefinitions.map { definition($0.definition) }
        let schema = OrderedJSON.object([
            ("format", .string("trebuchet-schema")), ("version", .number("1")),
            ("actors", .array(model.actors.map(actor))), ("types", .array(used)),
        ])
        return schema.text() + "\n"
    }

    private func actor(_ actor: ClientModel.Actor) -> OrderedJSON {
        var members: [(String, OrderedJSON)] = [
            ("name", .string(actor.name)), ("swiftName", .string(actor.swiftName)),
            ("kind", .string(actor.isProtocol ? "protocol" : "actor")),
        ]
        members += documentation(actor.documentation)
        members += [
            ("methods", .array(actor.methods.map(method))), ("states", .array(actor.states.map(stream))),
            ("events", .array(actor.events.map(stream))),
        ]
        for (name, streams) in [("privateStates", actor.privateStates), ("privateEvents", actor.privateEvents)]
        where !streams.isEmpty {
            members.append((name, .array(streams.map(stream))))
        }
        return .object(members)
    }

    private func method(_ method: ClientModel.Method) -> OrderedJSON {
        var members: [(String, OrderedJSON)] = [("name", .string(method.name)), ("target", .string(method.target))]
        members += documentation(method.documentation)
        members.append(
            (
                "parameters",
                .array(method.parameters.map { .object([("name", .string($0.name)), ("type", type($0.type))]) })
            ))
        if let result = method.result { members.append(("result", type(result))) }
        if let error = method.error {
            members.append(("error", .object([("name", .string(error.swiftName)), ("type", type(error.type))])))
        }
        if method.isIdempotent { members.append(("idempotent", .boolean(true))) }
        return .object(members)
    }

    private func stream(_ stream: ClientModel.Stream) -> OrderedJSON {
        var members: [(String, OrderedJSON)] = [("name", .string(stream.name)), ("target", .string(stream.target))]
        members += documentation(stream.documentation)
        members.append(("type", type(stream.type)))
        if let version = stream.storedVersion { members.append(("storedVersion", .number("\(version)"))) }
        return .object(members)
    }

    private func definition(_ definition: ClientModel.Definition) -> OrderedJSON {
        var members: [(String, OrderedJSON)] = [
            ("name", .string(definition.name)), ("swiftName", .string(definition.swiftName)),
        ]
        members += documentation(definition.documentation)
        if !definition.parameters.isEmpty {
            members.append(("parameters", .array(definition.parameters.map { .string($0) })))
        }
        switch definition.form {
        case .structure(let own): members += [("kind", .string("struct")), ("members", .array(own.map(member)))]
        case .rawValues(let cases):
            let values = cases.map { each in
                OrderedJSON.object([("name", .string(each.name)), ("value", rawValue(each.value))])
            }
            members += [("kind", .string("rawValues")), ("cases", .array(values))]
        case .union(let cases):
            let values = cases.map { each in
                OrderedJSON.object(
                    [("name", .string(each.name))] + documentation(each.documentation)
                        + [("members", .array(each.members.map(member)))])
            }
            members += [("kind", .string("union")), ("cases", .array(values))]
        case .id(let raw): members += [("kind", .string("id")), ("rawValue", type(raw))]
        case .custom(let text): members += [("kind", .string("custom")), ("typeScript", .string(text))]
        }
        return .object(members)
    }

    private func member(_ member: ClientModel.Member) -> OrderedJSON {
        var members: [(String, OrderedJSON)] = [("name", .string(member.name))]
        members += documentation(member.documentation)
        members.append(("type", type(member.type)))
        if member.isOptional { members.append(("optional", .boolean(true))) }
        return .object(members)
    }

    private func rawValue(_ value: ClientModel.RawValue) -> OrderedJSON {
        switch value {
        case .string(let text): .string(text)
        case .number(let text): .number(text)
        }
    }

    private func documentation(_ documentation: ClientModel.Documentation) -> [(String, OrderedJSON)] {
        var members: [(String, OrderedJSON)] = []
        if !documentation.lines.isEmpty {
            members.append(("documentation", .string(documentation.lines.joined(separator: "\n"))))
        }
        if let message = documentation.deprecation { members.append(("deprecated", .string(message))) }
        return members
    }

    private func type(_ type: WireType) -> OrderedJSON {
        switch type {
        case .string: .string("String")
        case .boolean: .string("Bool")
        case .url: .string("URL")
        case .uuid: .string("UUID")
        case .date: .string("Date")
        case .data: .string("Data")
        case .decimal: .string("Decimal")
        case .number(let name): .string(name)
        case .bigint(let name): .string(name)
        case .array(let element): .object([("array", self.type(element))])
        case .set(let element): .object([("set", self.type(element))])
        case .range(let bound): .object([("range", self.type(bound))])
        case .record(let key, let value): .object([("record", self.type(value)), ("key", self.type(key))])
        case .map(let key, let value): .object([("map", self.type(value)), ("key", self.type(key))])
        case .optional(let wrapped): .object([("optional", self.type(wrapped))])
        case .tolerant(let wrapped): .object([("tolerant", self.type(wrapped))])
        case .named(let id, let arguments):
            .object(
                [("named", .string(model.definitions[id]?.name ?? ""))]
                    + (arguments.isEmpty ? [] : [("arguments", .array(arguments.map { self.type($0) }))]))
        case .parameter(let name): .object([("parameter", .string(name))])
        case .reference(let actor): .object([("reference", .string(actor))])
        case .custom(let text): .object([("typeScript", .string(text))])
        case .unknown: .null
        }
    }
}

/// JSON whose members keep their order.
indirect enum OrderedJSON: Sendable {
    case null
    case boolean(Bool)
    case number(String)
    case string(String)
    case array([OrderedJSON])
    case object([(String, OrderedJSON)])

    /// Returns the text. A value that fits into 100 columns is written on one line.
    func text(indent: String = "") -> String {
        let line = inline
        if indent.count + line.count <= 100 { return line }
        let inner = indent + "  "
        switch self {
        case .array(let elements):
            return "[\n" + elements.map { inner + $0.text(indent: inner) }.joined(separator: ",\n") + "\n\(indent)]"
        case .object(let members):
            let lines = members.map { "\(inner)\(TypeScriptText.quoted($0.0)): \($0.1.text(indent: inner))" }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
        default: return line
        }
    }

    private var inline: String {
        switch self {
        case .null: "null"
        case .boolean(let value): value ? "true" : "false"
        case .number(let text): text
        case .string(let text): TypeScriptText.quoted(text)
        case .array(let elements): "[" + elements.map(\.inline).joined(separator: ", ") + "]"
        case .object(let members):
            members.isEmpty
                ? "{}"
                : "{ " + members.map { "\(TypeScriptText.quoted($0.0)): \($0.1.inline)" }.joined(separator: ", ") + " }"
        }
    }
}
