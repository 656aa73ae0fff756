internal import Bytes
internal import Glibc
internal import Platform
internal import Transports
internal import TrebuchetActors
internal import TrebuchetWire
internal import WebSockets

/// An error response: a problem document (RFC 9457) with the code of the error. A pure value.
struct HTTPProblem {
    /// The status and the title of each code. `HTTPUnitTests` compares them with the guide.
    static let kinds: [ErrorCode: (status: Int, title: String)] = [
        .actorNotFound: (404, "Actor not found"), .methodNotFound: (404, "Method not found"),
        .invalidArguments: (400, "Invalid call"), .malformedEnvelope: (400, "Malformed call"),
        .unauthenticated: (401, "Not authenticated"), .unauthorized: (403, "Not authorized"),
        .rateLimited: (429, "Limit reached"), .unavailable: (503, "Temporarily unavailable"),
        .timeout: (504, "Deadline passed"), .application: (422, "Error of the application"),
        .unknownOutcome: (500, "Unknown outcome"), .cancelled: (500, "Cancelled"), .overflow: (500, "Events missed"),
        .internal: (500, "Internal error"),
    ]
    /// The time to wait in seconds after an error that has none.
    private static let retryAfterSeconds: [ErrorCode: Int] = [.rateLimited: 1, .unavailable: 5]

    let status: Int
    /// Nil for a refusal of HTTP itself.
    let code: ErrorCode?
    let detail: String
    /// The name of the type of an error that the method threw, and its JSON if it is `Codable`.
    var errorType: String?
    var data: [UInt8]?
    var retryAfterMilliseconds: Int?
    /// Further fields of the response.
    var headers: HTTPHeaders = [:]

    /// Creates the problem of an error with a code.
    ///
    /// - Parameter data: The JSON of a thrown `Codable` error. An error of the code `application` without it has the status 500.
    init(
        _ code: ErrorCode, _ detail: String, type: String? = nil, data: [UInt8]? = nil,
        retryAfterMilliseconds: Int? = nil
    ) {
        let isUnexpected = code == .application && data == nil
        status = isUnexpected ? 500 : Self.kinds[code]?.status ?? 500
        (self.code, self.detail, self.data) = (code, detail, data)
        self.retryAfterMilliseconds = retryAfterMilliseconds
        errorType = type
    }

    init(_ error: TrebuchetError) {
        self.init(
            error.code.wire, error.message, type: error.type, data: error.data,
            retryAfterMilliseconds: error.retryAfter?.milliseconds)
    }

    init(_ failure: CallFailure) {
        self.init(
            failure.code, failure.message, type: failure.type, data: failure.data,
            retryAfterMilliseconds: failure.retryAfterMilliseconds)
    }

    /// Creates the problem of a request that HTTP itself refuses.
    ///
    /// - Parameter code: The code that describes it; nil if none does.
    init(status: Int, _ detail: String, code: ErrorCode? = nil, headers: HTTPHeaders = [:]) {
        (self.status, self.detail, self.code, self.headers) = (status, detail, code, headers)
    }

    init(_ rejection: HTTPRejection) {
        let code: ErrorCode? =
            switch rejection.status {
            case 400, 411, 413, 415, 417, 501: .invalidArguments
            case 429: .rateLimited
            case 503: .unavailable
            default: nil
            }
        self.init(status: rejection.status, rejection.reason, code: code, headers: rejection.headers)
    }

    /// Creates the problem of a client that `authenticate` refuses.
    ///
    /// - Parameter refusal: The response to a WebSocket upgrade.
    init(_ refusal: (response: HTTPResponse, reason: String)) {
        let code: ErrorCode? =
            switch refusal.response.status {
            case 401: .unauthenticated
            case 403: .unauthorized
            default: .unavailable
            }
        self.init(status: refusal.response.status, refusal.reason, code: code)
        if let wait = refusal.response.headers[Self.retryAfter] { headers.add(Self.retryAfter, wait) }
    }

    private static let retryAfter = "Retry-After"
    private static let mediaType = "application/problem+json"

    /// The response, with the reason as the member `detail`.
    var response: HTTPResponse {
        var response = HTTPResponse(status: status, headers: Self.fields(type: Self.mediaType), body: json)
        for field in headers.fields { response.headers.add(field.name, field.value) }
        if status == 401 { response.headers.add("WWW-Authenticate", "Bearer") }
        if response.headers[Self.retryAfter] == nil, let seconds = waitSeconds {
            response.headers.add(Self.retryAfter, "\(seconds)")
        }
        return response
    }

    private var waitSeconds: Int? {
        if let milliseconds = retryAfterMilliseconds { return (max(0, milliseconds) + 999) / 1_000 }
        return code.flatMap { Self.retryAfterSeconds[$0] }
    }

    /// The fields of the responses of calls, which caches do not store.
    ///
    /// - Parameter type: The media type of the body; nil without a body.
    static func fields(type: String?) -> HTTPHeaders {
        var fields: HTTPHeaders = ["Date": HTTPDate.text(time(nil)), "Cache-Control": "no-store"]
        guard let type else { return fields }
        fields.add("Content-Type", type)
        fields.add("X-Content-Type-Options", "nosniff")
        return fields
    }

    /// Returns the member `detail` of a response; nil for a response that is no problem document.
    static func detail(of response: HTTPResponse) -> String? {
        struct Document: Decodable {
            var detail: String
        }
        guard response.headers["Content-Type"] == mediaType else { return nil }
        return response.body.withUnsafeBytes { try? ValueCoder().decode(Document.self, from: $0).detail }
    }

    private var json: [UInt8] {
        var buffer = ByteBuffer()
        buffer.append(#"{"type":"# as StaticString)
        JSONString.append(code.map { "urn:trebuchet:error:\($0.rawValue)" } ?? "about:blank", to: &buffer)
        buffer.append(#","title":"# as StaticString)
        JSONString.append(code.map { Self.kinds[$0]?.title ?? "Error" } ?? HTTPResponse.phrase(status), to: &buffer)
        buffer.append(#","status":"# as StaticString)
        buffer.append(decimal: Int64(status))
        if let code {
            buffer.append(#","code":"# as StaticString)
            JSONString.append(code.rawValue, to: &buffer)
        }
        buffer.append(#","detail":"# as StaticString)
        JSONString.append(detail, to: &buffer)
        if let errorType {
            buffer.append(#","errorType":"# as StaticString)
            JSONString.append(errorType, to: &buffer)
        }
        if let data {
            buffer.append(#","data":"# as StaticString)
            buffer.append(data)
        }
        if let retryAfterMilliseconds {
            buffer.append(#","retryAfterMilliseconds":"# as StaticString)
            buffer.append(decimal: Int64(retryAfterMilliseconds))
        }
        buffer.append("}" as StaticString)
        return Array(buffer.bytes)
    }
}
