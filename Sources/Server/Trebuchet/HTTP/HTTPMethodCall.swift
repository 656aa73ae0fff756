internal import Bytes
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// A method of an actor that is a route over HTTP.
struct HTTPServedMethod: Sendable {
    /// The name of the actor.
    let actor: String
    /// The name of the method, such as `addItem(id:)`.
    let target: String
    let route: _HTTPRoute

    private var hasBody: Bool { route.arguments.contains { if case .body = $0.place { true } else { false } } }

    /// Reads the fields of a request as those of a call. Throws the refusal of a request.
    func call(_ head: HTTPRequestHead) throws(HTTPRejection) -> HTTPCallRequest {
        try HTTPCallRequest(head, to: actor, target, hasBody: head.body != .empty)
    }

    /// Returns the arguments of a request as JSON, separated by commas.
    ///
    /// - Parameters:
    ///   - path: The values of the parameters in the path, by their names.
    ///   - body: The body; ignored by a method without arguments there.
    /// - Throws: `EnvelopeError` for an argument that is missing or has another form.
    func arguments(
        path: [String: String], query: [RouteRequest.QueryItem], body: [UInt8]
    ) throws(EnvelopeError) -> [UInt8] {
        let members = hasBody ? try Self.members(body) : [:]
        var buffer = ByteBuffer()
        for (index, argument) in route.arguments.enumerated() {
            if index > 0 { buffer.append(UInt8(ascii: ",")) }
            switch argument.place {
            case .path(let form): try append(path[argument.name], argument, form, to: &buffer)
            case .query(let form):
                try append(query.first { $0.name == argument.name }?.value, argument, form, to: &buffer)
            case .body:
                guard let value = members[argument.name] else {
                    try appendMissing(argument, to: &buffer)
                    continue
                }
                buffer.append(Array(body[value]))
            }
        }
        return Array(buffer.bytes)
    }

    private func append(
        _ text: String?, _ argument: _HTTPRoute.Argument, _ form: _HTTPRoute.Form, to buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        guard let text else { return try appendMissing(argument, to: &buffer) }
        switch form {
        case .text: JSONString.append(text, to: &buffer)
        case .number:
            guard Self.isNumber(text) else { throw EnvelopeError("'\(argument.name)' is not a number") }
            buffer.append(utf8: text)
        case .boolean:
            guard text == "true" || text == "false" else {
                throw EnvelopeError("'\(argument.name)' is neither true nor false")
            }
            buffer.append(utf8: text)
        }
    }

    private func appendMissing(
        _ argument: _HTTPRoute.Argument, to buffer: inout ByteBuffer
    ) throws(EnvelopeError) {
        guard argument.isOptional else { throw EnvelopeError("the argument '\(argument.name)' is missing") }
        buffer.append("null" as StaticString)
    }

    /// Returns whether a text is one JSON number, so that it cannot add arguments.
    private static func isNumber(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first) else { return false }
        return bytes.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            guard let value = try? cursor.value() else { return false }
            return Int(value.count) == bytes.count
        }
    }

    /// Returns the places of the members of an object in the body; none for an empty body.
    private static func members(_ body: [UInt8]) throws(EnvelopeError) -> [String: Range<Int>] {
        guard String(validating: body, as: UTF8.self) != nil else { throw EnvelopeError("the body is not UTF-8") }
        let found: Result<[String: Range<Int>], EnvelopeError> = body.withUnsafeBytes { bytes in
            Result { () throws(EnvelopeError) in
                var members: [String: Range<Int>] = [:]
                var cursor = JSONCursor(bytes)
                if cursor.peek() == 0, cursor.at == body.count { return members }
                guard cursor.consume(UInt8(ascii: "{")) else { throw EnvelopeError("the body is not a JSON object") }
                var isFirst = true
                while let name = try cursor.name(&isFirst) {
                    let text = cursor.text(name)
                    let value = try cursor.value(depth: 2)
                    let range = Int(value.offset)..<(Int(value.offset) + Int(value.count))
                    guard members.updateValue(range, forKey: text) == nil else {
                        throw EnvelopeError("the body has the member '\(text.prefix(bytes: 64))' twice")
                    }
                }
                try cursor.expectEnd()
                return members
            }
        }
        return try found.get()
    }
}

/// A call over HTTP by the route of a method. Only on the reactor of the request.
final class HTTPMethodCall: HTTPCall {
    private let method: HTTPServedMethod
    private let parameters: [String: String]

    /// - Parameter parameters: The values of the parameters in the path, by their names.
    init(
        _ received: ReceivedRequest, to method: HTTPServedMethod, _ parameters: [String: String],
        at shard: ServerShard, _ admission: HTTPAdmission
    ) {
        (self.method, self.parameters) = (method, parameters)
        super.init(received, at: shard, admission)
    }

    override func readCall(_ head: HTTPRequestHead) throws(HTTPRejection) -> HTTPCallRequest { try method.call(head) }

    override func arguments(_ body: [UInt8]) throws(EnvelopeError) -> [UInt8] {
        let query = RouteRequest.items(of: received.request.head.query)
        return try method.arguments(path: parameters, query: query, body: body)
    }
}
