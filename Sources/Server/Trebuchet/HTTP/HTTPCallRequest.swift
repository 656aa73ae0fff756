internal import Bytes
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// The call that an HTTP request makes: `POST /call/ACTOR/METHOD` with a JSON array of the arguments. A pure value.
struct HTTPCallRequest {
    /// The start of the paths of calls.
    static let prefix = "/call/"
    /// The first component of these paths.
    static let component = "call"
    /// The request field with the deadline in milliseconds.
    static let timeoutField = "Trebuchet-Timeout"
    /// The maximum length of a trace context, which the server ignores when it is invalid.
    private static let maximumTraceBytes = 64

    let actor: String
    let method: String
    let idempotencyKey: String?
    let timeoutMilliseconds: Int?
    let traceparent: String?

    /// Reads the head of a request. Throws the refusal of a request that is no call.
    init(_ head: HTTPRequestHead) throws(HTTPRejection) {
        guard head.method == "POST" else {
            throw HTTPRejection(405, "a call requires POST", headers: ["Allow": "POST"])
        }
        let (actor, method) = try Self.target(head.path, after: Self.prefix, "the path of a call is /call/ACTOR/METHOD")
        try self.init(head, to: actor, method, hasBody: true)
    }

    /// Reads the fields of a request that calls a method. Throws the refusal of a request.
    ///
    /// - Parameter hasBody: True to require the type of the body.
    init(_ head: HTTPRequestHead, to actor: String, _ method: String, hasBody: Bool) throws(HTTPRejection) {
        (self.actor, self.method) = (actor, method)
        if hasBody { try Self.checkType(head.headers) }
        idempotencyKey = try Self.idempotencyKey(head.headers)
        timeoutMilliseconds = try Self.timeout(head.headers)
        traceparent = Self.traceparent(head.headers)
    }

    /// Returns the trace context of a request.
    static func traceparent(_ headers: HTTPHeaders) -> String? {
        headers["traceparent"].flatMap { $0.utf8.count <= maximumTraceBytes ? $0 : nil }
    }

    /// Returns the names of the actor and its member. The last component is the member; the actor may have several.
    ///
    /// - Parameter form: The reason of the refusal of another path.
    static func target(
        _ path: String, after prefix: String, _ form: String
    ) throws(HTTPRejection) -> (actor: String, member: String) {
        let rest = path.dropFirst(prefix.count)
        guard path.hasPrefix(prefix), let slash = rest.lastIndex(of: "/") else { throw HTTPRejection(404, form) }
        let (actor, member) = (try decode(rest[..<slash]), try decode(rest[rest.index(after: slash)...]))
        guard !actor.isEmpty, !member.isEmpty else { throw HTTPRejection(404, form) }
        return (actor, member)
    }

    private static func decode(_ text: Substring) throws(HTTPRejection) -> String {
        do throws(PagePath.InvalidPath) {
            let bytes = try PagePath.decode(Array(text.utf8)[...])
            if let decoded = String(validating: bytes, as: UTF8.self) { return decoded }
        } catch {
            throw HTTPRejection(400, "the path has a percent sign without two hexadecimal digits")
        }
        throw HTTPRejection(400, "the path is not UTF-8 after percent-decoding")
    }

    /// Browsers ask the server before they send a request of another origin with this type.
    private static func checkType(_ headers: HTTPHeaders) throws(HTTPRejection) {
        let types = headers.values("Content-Type")
        let essence = types.first.map { $0.prefix { $0 != ";" }.trimmingSpaces.lowercased() }
        guard types.count == 1, essence == "application/json" else {
            throw HTTPRejection(415, "the Content-Type of a call is application/json")
        }
    }

    private static func idempotencyKey(_ headers: HTTPHeaders) throws(HTTPRejection) -> String? {
        let keys = headers.values(IdempotencyKey.field)
        guard let key = keys.first else { return nil }
        guard keys.count == 1, IdempotencyKey.isValid(key) else {
            throw HTTPRejection(
                400, "\(IdempotencyKey.field) is 1 to \(IdempotencyKey.maximumBytes) printable ASCII characters, once")
        }
        return key
    }

    private static func timeout(_ headers: HTTPHeaders) throws(HTTPRejection) -> Int? {
        guard let text = headers[timeoutField] else { return nil }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let milliseconds = Int(text), milliseconds > 0
        else {
            throw HTTPRejection(400, "\(timeoutField) is a number of milliseconds above 0")
        }
        return milliseconds
    }

    /// Returns the message of the call.
    ///
    /// - Parameters:
    ///   - arguments: The arguments as JSON, separated by commas.
    ///   - session: The session of the idempotency key; nil without one.
    func message(_ arguments: [UInt8], session: String?) -> [UInt8] {
        var buffer = ByteBuffer()
        // The writer joins arguments by commas: this is all of them.
        EnvelopeWriter.invocation(
            callID: IdempotencyKey.callNumber, actorID: actor, target: method, arguments: [arguments],
            timeoutMilliseconds: timeoutMilliseconds, session: session, traceparent: traceparent,
            isRepeat: session != nil, into: &buffer)
        return Array(buffer.bytes)
    }

    /// Returns the arguments in a body: the inside of a JSON array in UTF-8; none in an empty body.
    static func arguments(_ body: [UInt8]) throws(EnvelopeError) -> [UInt8] {
        guard String(validating: body, as: UTF8.self) != nil else { throw EnvelopeError("the body is not UTF-8") }
        return Array(body[try place(ofArguments: body)])
    }

    /// Returns the place of the arguments between the brackets. The body is one array and nothing else, so that it cannot add members to
    /// the message.
    private static func place(ofArguments body: [UInt8]) throws(EnvelopeError) -> Range<Int> {
        let found: Result<Range<Int>, EnvelopeError> = body.withUnsafeBytes { bytes in
            Result { () throws(EnvelopeError) in
                var cursor = JSONCursor(bytes)
                let first = cursor.peek()
                if first == 0, cursor.at == body.count { return 0..<0 }
                guard first == UInt8(ascii: "[") else { throw EnvelopeError("the body is not a JSON array") }
                let start = cursor.at + 1
                _ = try cursor.value(depth: 2)
                let end = cursor.at - 1
                try cursor.expectEnd()
                return start..<end
            }
        }
        return try found.get()
    }
}
