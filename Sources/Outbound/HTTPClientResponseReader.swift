internal import Transports
internal import WebSockets

/// An HTTP response.
package struct HTTPClientResponse: Equatable {
    package let status: Int
    let headers: HTTPHeaders
    package let body: [UInt8]

    /// Returns the elements of a list-valued field, over all its occurrences.
    package func list(_ field: String) -> [String] { headers.list(field) }
}

/// An incremental reader of one response (RFC 9112 §6, §7) with a size limit. It does no I/O.
struct HTTPClientResponseReader {
    private let limit: Int
    private var scanner = HTTPHeadScanner(limits: WebSocketLimits())
    private var bytes: [UInt8] = []
    private var head: (HTTPResponseHead, length: Int)?

    /// Creates a reader.
    ///
    /// - Parameter limit: the maximum size of the response in bytes.
    init(limit: Int) { self.limit = limit }

    /// Appends a part. Returns nil while the response is incomplete.
    mutating func receive(_ part: UnsafeRawBufferPointer) throws(FetchError) -> HTTPClientResponse? {
        guard bytes.count + part.count <= limit else { throw FetchError("the response is larger than \(limit) bytes") }
        bytes += part
        try readHead()
        guard let (head, length) = head else { return nil }
        let body = bytes[length...]
        switch try framing(head) {
        case .chunked: return try Self.decodeChunked(body).map { reply(head, $0) }
        case .count(let count): return body.count >= count ? reply(head, Array(body.prefix(count))) : nil
        case .end: return nil
        }
    }

    /// Handles the orderly end of the connection.
    mutating func handleEndOfInput() throws(FetchError) -> HTTPClientResponse {
        guard let (head, length) = head, case .end = try framing(head) else {
            throw FetchError("the connection ended within the response")
        }
        return reply(head, Array(bytes[length...]))
    }

    private func reply(_ head: HTTPResponseHead, _ body: [UInt8]) -> HTTPClientResponse {
        HTTPClientResponse(status: head.status, headers: head.headers, body: body)
    }

    private mutating func readHead() throws(FetchError) {
        guard head == nil else { return }
        let (result, parsed) = bytes.withUnsafeBytes { bytes in
            let result = scanner.scan(bytes)
            guard case .complete(let length) = result else { return (result, HTTPResponseHead?.none) }
            return (result, try? HTTPResponseHead.parse(UnsafeRawBufferPointer(rebasing: bytes[..<length])))
        }
        switch result {
        case .incomplete: return
        case .complete(let length):
            guard let parsed, parsed.status >= 200 else { throw FetchError("the response is not HTTP/1.1") }
            head = (parsed, length)
        case .rejection(let rejection): throw FetchError("the response is not HTTP/1.1: \(rejection.reason)")
        }
    }

    /// The framing of the response body.
    private enum Framing { case chunked, count(Int), end }

    private func framing(_ head: HTTPResponseHead) throws(FetchError) -> Framing {
        let coding = head.headers.list("Transfer-Encoding")
        if !coding.isEmpty {
            guard coding.count == 1, coding[0].lowercased() == "chunked" else {
                throw FetchError("the response has an unsupported Transfer-Encoding")
            }
            return .chunked
        }
        let lengths = head.headers.values("Content-Length")
        guard let first = lengths.first else { return .end }
        guard lengths.count == 1, first.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(first) else {
            throw FetchError("the response has an invalid Content-Length")
        }
        guard count <= limit else { throw FetchError("the response is larger than \(limit) bytes") }
        return .count(count)
    }

    /// Decodes a chunked body. Returns nil while it is incomplete.
    private static func decodeChunked(_ coded: ArraySlice<UInt8>) throws(FetchError) -> [UInt8]? {
        var rest = coded
        var body: [UInt8] = []
        while true {
            guard let end = rest.firstIndex(of: 0x0A) else {
                guard rest.count <= 1024 else { throw FetchError("the response has a chunk without a size") }
                return nil
            }
            let digits = rest[..<end].prefix { $0 != UInt8(ascii: ";") && $0 != 0x0D && $0 != 0x20 }
            guard (1...8).contains(digits.count), digits.allSatisfy(\.isHexadecimal),
                let size = Int(String(decoding: digits, as: UTF8.self), radix: 16)
            else { throw FetchError("the response has a chunk without a size") }
            rest = rest[(end + 1)...]
            // The trailer after the last chunk is ignored.
            if size == 0 { return body }
            guard rest.count >= size + 2 else { return nil }
            body += rest.prefix(size)
            rest = rest.dropFirst(size)
            guard rest.starts(with: [0x0D, 0x0A]) else { throw FetchError("a chunk of the response has no end") }
            rest = rest.dropFirst(2)
        }
    }
}

extension UInt8 {
    fileprivate var isHexadecimal: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
        default: false
        }
    }
}
