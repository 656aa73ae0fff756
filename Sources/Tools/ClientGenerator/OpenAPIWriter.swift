internal import SwiftReading

/// Writes the calls, streams and routes of methods over HTTP as an OpenAPI 3.1 document; Docs/Guides/HTTP.md describes the requests.
struct OpenAPIWriter {
    /// A path, given by two operations.
    struct Collision: Error {
        let path: String
        /// The Swift names of the actors.
        let actors: [String]
    }

    private let model: ClientModel
    /// The names of actors by their types, with parameters in braces; others have any name.
    private let names: [String: String]
    private var schemas: OpenAPISchemas
    private var paths: [(path: String, actor: String, operations: [(String, OrderedJSON)])] = []

    init(_ model: ClientModel, names: [String: String]) {
        (self.model, self.names) = (model, names)
        schemas = OpenAPISchemas(model)
    }

    /// Returns the document. Throws the first path of two actor types, whose names are not distinguished.
    mutating func file(title: String) throws(Collision) -> String {
        for actor in model.actors {
            for method in actor.methods {
                try add("post", path(method.target, "call", of: actor), call(method, of: actor), of: actor)
                guard let (attribute, names) = method.route, let components = attribute.components else { continue }
                let template = components.map { $0.hasPrefix(":") ? "{\($0.dropFirst())}" : $0 }.joined(separator: "/")
                try add(attribute.method, "/" + template, route(attribute, names, method, of: actor), of: actor)
            }
            for stream in actor.states { try add(stream, isState: true, of: actor) }
            for stream in actor.events { try add(stream, isState: false, of: actor) }
        }
        let documented = paths.map { ($0.path, OrderedJSON.object($0.operations)) }
        let document = OrderedJSON.object([
            ("openapi", .string("3.1.0")),
            ("info", .object([("title", .string(title)), ("version", .string("1"))])),
            ("security", .array([.object([]), .object([("bearer", .array([]))])])),
            (
                "tags",
                .array(model.actors.map { .object([("name", .string($0.name))] + Self.description($0.documentation)) })
            ),
            ("paths", .object(documented)), ("components", components()),
        ])
        return document.text() + "\n"
    }

    private mutating func add(
        _ stream: ClientModel.Stream, isState: Bool, of actor: ClientModel.Actor
    ) throws(Collision) {
        let path = path(stream.name, "observe", of: actor)
        try add("get", path, observation(stream, isState: isState, of: actor), of: actor)
    }

    private mutating func add(
        _ method: String, _ path: String, _ operation: OrderedJSON, of actor: ClientModel.Actor
    ) throws(Collision) {
        guard let index = paths.firstIndex(where: { Self.isSame($0.path, path) }) else {
            return paths.append((path, actor.swiftName, [(method, operation)]))
        }
        // A second method may give the same parameter of a path another name.
        guard paths[index].path == path, !paths[index].operations.contains(where: { $0.0 == method }) else {
            throw Collision(path: path, actors: [paths[index].actor, actor.swiftName])
        }
        paths[index].operations.append((method, operation))
    }

    /// Returns whether two paths differ only in the names of their parameters.
    private static func isSame(_ one: String, _ other: String) -> Bool { pattern(one) == pattern(other) }

    private static func pattern(_ path: String) -> [String] {
        path.split(separator: "/", omittingEmptySubsequences: false).map { $0.hasPrefix("{") ? "{}" : String($0) }
    }

    // MARK: Operations

    private func path(_ member: String, _ first: String, of actor: ClientModel.Actor) -> String {
        "/\(first)/\(names[actor.swiftName] ?? "{actor}")/\(Self.encoded(member))"
    }

    private mutating func call(_ method: ClientModel.Method, of actor: ClientModel.Actor) -> OrderedJSON {
        var members = head(method.name, method.documentation, of: actor)
        var parameters = nameParameters(of: actor)
        parameters.append(Self.reference("parameters", "Timeout"))
        if method.isIdempotent { parameters.append(Self.reference("parameters", "IdempotencyKey")) }
        members.append(("parameters", .array(parameters)))
        var arguments: [OrderedJSON] = []
        for parameter in method.parameters {
            let title = OrderedJSON.object([("title", .string(parameter.name))])
            arguments.append(title.adding(schemas.schema(parameter.type)))
        }
        members.append(("requestBody", Self.body("application/json", Self.tuple(arguments), isRequired: true)))
        members.append(("responses", responses(result: method.result, error: method.error?.type)))
        return .object(members)
    }

    private mutating func route(
        _ attribute: HTTPAttribute, _ names: [String], _ method: ClientModel.Method, of actor: ClientModel.Actor
    ) -> OrderedJSON {
        var members = head("\(method.name).http", method.documentation, of: actor)
        var parameters: [OrderedJSON] = []
        var (properties, required): ([(String, OrderedJSON)], [OrderedJSON]) = ([], [])
        for (name, parameter) in zip(names, method.parameters) {
            let schema = schemas.schema(parameter.type.unwrapped)
            let isInPath = attribute.parameters.contains(name)
            if isInPath || !attribute.hasBody {
                let place = isInPath ? "path" : "query"
                parameters.append(
                    Self.parameter(name, in: place, "", isRequired: !parameter.type.isOptional, schema: schema.members))
            } else {
                properties.append((name, schema))
                if !parameter.type.isOptional { required.append(.string(name)) }
            }
        }
        parameters.append(Self.reference("parameters", "Timeout"))
        if method.isIdempotent { parameters.append(Self.reference("parameters", "IdempotencyKey")) }
        members.append(("parameters", .array(parameters)))
        if !properties.isEmpty {
            let object = OrderedJSON.object(
                [("type", .string("object")), ("properties", .object(properties))]
                    + (required.isEmpty ? [] : [("required", .array(required))]))
            members.append(("requestBody", Self.body("application/json", object, isRequired: !required.isEmpty)))
        }
        members.append(("responses", responses(result: method.result, error: method.error?.type)))
        return .object(members)
    }

    private mutating func observation(
        _ stream: ClientModel.Stream, isState: Bool, of actor: ClientModel.Actor
    ) -> OrderedJSON {
        var members = head(
            "observe" + stream.name.prefix(1).uppercased() + stream.name.dropFirst(), stream.documentation, of: actor)
        members.append(
            ("parameters", .array(nameParameters(of: actor) + [Self.reference("parameters", "LastEventID")])))
        let text =
            isState
            ? "The current value, then each new one, as Server-Sent Events." : "Each event, as Server-Sent Events."
        let content = OrderedJSON.object([
            ("schema", .object([("type", .string("string"))])),
            // OpenAPI 3.1 cannot describe the items of a stream.
            ("x-event-data", schemas.schema(stream.type)),
        ])
        let events = OrderedJSON.object([
            ("description", .string(text)), ("content", .object([("text/event-stream", content)])),
        ])
        members.append(("responses", .object([("200", events), ("default", Self.reference("responses", "Problem"))])))
        return .object(members)
    }

    private func head(
        _ name: String, _ documentation: ClientModel.Documentation, of actor: ClientModel.Actor
    ) -> [(String, OrderedJSON)] {
        [("operationId", .string("\(actor.name).\(name)")), ("tags", .array([.string(actor.name)]))]
            + Self.description(documentation)
            + (documentation.deprecation == nil ? [] : [("deprecated", .boolean(true))])
    }

    static func description(_ documentation: ClientModel.Documentation) -> [(String, OrderedJSON)] {
        let lines = documentation.lines + [documentation.deprecation].compactMap { $0 }.filter { !$0.isEmpty }
        return lines.isEmpty ? [] : [("description", .string(lines.joined(separator: "\n")))]
    }

    /// The parameters in the name of the actor.
    private func nameParameters(of actor: ClientModel.Actor) -> [OrderedJSON] {
        guard let name = names[actor.swiftName] else {
            return [
                Self.parameter("actor", in: "path", "The name of the actor, a \(actor.swiftName).", isRequired: true)
            ]
        }
        return Self.parameters(in: name).map {
            Self.parameter($0, in: "path", "A part of the name of the actor, a \(actor.swiftName).", isRequired: true)
        }
    }

    /// Returns the names in braces of a path.
    private static func parameters(in path: String) -> [String] {
        path.split(separator: "/").filter { $0.hasPrefix("{") && $0.hasSuffix("}") }.map {
            String($0.dropFirst().dropLast())
        }
    }

    private mutating func responses(result: WireType?, error: WireType?) -> OrderedJSON {
        var members: [(String, OrderedJSON)] = []
        if let result {
            let content = Self.content("application/json", schemas.schema(result))
            members.append(("200", .object([("description", .string("The result.")), ("content", content)])))
        } else {
            members.append(("204", .object([("description", .string("The method has run."))])))
        }
        if let error {
            let problem = OrderedJSON.object([
                (
                    "allOf",
                    .array([
                        Self.reference("schemas", OpenAPISchemas.problem),
                        .object([("properties", .object([("data", schemas.schema(error))]))]),
                    ])
                )
            ])
            members.append(
                (
                    "422",
                    .object([
                        ("description", .string("The method has thrown its error.")),
                        ("content", Self.content("application/problem+json", problem)),
                    ])
                ))
        }
        members.append(("default", Self.reference("responses", "Problem")))
        return .object(members)
    }

    // MARK: Components

    private func components() -> OrderedJSON {
        let problem = OrderedJSON.object([
            ("description", .string("A refusal or an error, as a problem document (RFC 9457).")),
            ("content", Self.content("application/problem+json", Self.reference("schemas", OpenAPISchemas.problem))),
        ])
        let parameters: [(String, OrderedJSON)] = [
            (
                "IdempotencyKey",
                Self.parameter(
                    "Idempotency-Key", in: "header",
                    "Later requests with the same key get the response of the first. Requires credentials.")
            ),
            ("LastEventID", Self.parameter("Last-Event-ID", in: "header", "The id of the last received event.")),
            (
                "Timeout",
                Self.parameter(
                    "Trebuchet-Timeout", in: "header", "The deadline of the call in milliseconds.",
                    schema: [("type", .string("integer")), ("minimum", .number("1"))])
            ),
        ]
        let bearer = OrderedJSON.object([("type", .string("http")), ("scheme", .string("bearer"))])
        return .object([
            ("schemas", .object(schemas.all)), ("responses", .object([("Problem", problem)])),
            ("parameters", .object(parameters)), ("securitySchemes", .object([("bearer", bearer)])),
        ])
    }

    // MARK: Parts

    static func reference(_ kind: String, _ name: String) -> OrderedJSON {
        .object([("$ref", .string("#/components/\(kind)/\(name)"))])
    }

    /// Returns the schema of an array with exactly these elements.
    static func tuple(_ elements: [OrderedJSON]) -> OrderedJSON {
        let count = OrderedJSON.number("\(elements.count)")
        let array: [(String, OrderedJSON)] = [("type", .string("array"))]
        // The list of schemas must not be empty.
        guard !elements.isEmpty else { return .object(array + [("maxItems", count)]) }
        return .object(array + [("prefixItems", .array(elements)), ("minItems", count), ("maxItems", count)])
    }

    private static func content(_ type: String, _ schema: OrderedJSON) -> OrderedJSON {
        .object([(type, .object([("schema", schema)]))])
    }

    private static func body(_ type: String, _ schema: OrderedJSON, isRequired: Bool) -> OrderedJSON {
        .object([("required", .boolean(isRequired)), ("content", content(type, schema))])
    }

    private static func parameter(
        _ name: String, in place: String, _ description: String, isRequired: Bool = false,
        schema: [(String, OrderedJSON)] = [("type", .string("string"))]
    ) -> OrderedJSON {
        var members: [(String, OrderedJSON)] = [("name", .string(name)), ("in", .string(place))]
        if !description.isEmpty { members.append(("description", .string(description))) }
        if isRequired { members.append(("required", .boolean(true))) }
        return .object(members + [("schema", .object(schema))])
    }

    /// Percent-encodes a component of a path. Braces would begin a parameter.
    private static func encoded(_ text: String) -> String {
        let plain = Set("-._~!$&'()*+,;=:@".utf8)
        return text.utf8.map { byte in
            let isPlain =
                plain.contains(byte) || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                || (0x61...0x7A).contains(byte)
            let digits = String(byte, radix: 16, uppercase: true)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (digits.count < 2 ? "0" : "") + digits
        }.joined()
    }
}

extension OrderedJSON {
    /// The members of an object.
    var members: [(String, OrderedJSON)] { if case .object(let members) = self { members } else { [] } }

    /// Returns an object with the members of another one, except those that it has.
    fileprivate func adding(_ other: OrderedJSON) -> OrderedJSON {
        guard case .object(let members) = self, case .object(let more) = other else { return self }
        return .object(members + more.filter { new in !members.contains { $0.0 == new.0 } })
    }
}
