internal import COpenSSL
internal import Networking
internal import WebSockets

/// A page in memory, for the lifetime of its server.
struct MemoryPage: Sendable {
    let type: String
    let tag: String
    let headers: HTTPHeaders
    let body: @Sendable () -> [UInt8]
    /// Decides whether the page exists for a request; other clients get 404.
    let isFor: @Sendable (PlainRequest) -> Bool

    init(_ body: [UInt8], type: String, headers: HTTPHeaders = [:]) {
        self.type = type
        self.headers = headers
        tag = Self.tag(body)
        self.body = { body }
        isFor = { _ in true }
    }

    /// Creates a page whose body is generated for each request.
    init(
        type: String, isFor: @escaping @Sendable (PlainRequest) -> Bool, body: @escaping @Sendable () -> [UInt8]
    ) {
        self.type = type
        self.headers = [:]
        tag = ""
        self.body = body
        self.isFor = isFor
    }

    func reply(_ request: PlainRequest) -> StreamedResponse {
        let bytes = body()
        let tag = tag.isEmpty ? Self.tag(bytes) : tag
        var fields = PageRouter.headers(type: type)
        fields.add("ETag", tag)
        fields.add("Cache-Control", "no-cache")
        for field in headers.fields { fields.add(field.name, field.value) }
        guard !EntityTag.isKnown(tag, to: request.head.headers) else {
            return StreamedResponse(HTTPResponse(status: 304, headers: fields))
        }
        return StreamedResponse(HTTPResponse(status: 200, headers: fields), body: bytes)
    }

    /// Returns an entity tag: a hash of the content.
    private static func tag(_ body: [UInt8]) -> String { "\"\(ContentHash.base64(body).prefix(22))\"" }
}

/// SHA-256 in base64.
enum ContentHash {
    static func base64(_ bytes: [UInt8]) -> String {
        precondition(OpenSSL.isInitialized, "OpenSSL initialization failed")
        var digest = [UInt8](repeating: 0, count: 32)
        var size: UInt32 = 0
        let status = EVP_Digest(bytes, bytes.count, &digest, &size, EVP_sha256(), nil)
        precondition(status == 1 && size == 32, "libcrypto has no SHA-256")
        var text = [UInt8](repeating: 0, count: 45)
        let count = EVP_EncodeBlock(&text, digest, 32)
        return String(decoding: text[..<Int(count)], as: UTF8.self)
    }
}
