import Testing

@testable import Outbound

@Suite struct HTTPClientResponseReaderTests {
    /// The response parsed from pieces of the given size; nil for an error.
    private func read(_ answer: String, pieces: Int) -> HTTPClientResponse? {
        var reader = HTTPClientResponseReader(limit: 1000)
        let bytes = Array(answer.utf8)
        do throws(FetchError) {
            for start in stride(from: 0, to: bytes.count, by: pieces) {
                let piece = Array(bytes[start..<min(start + pieces, bytes.count)])
                let box = piece.withUnsafeBytes { piece in
                    Result { () throws(FetchError) in try reader.receive(piece) }
                }
                if let reply = try box.get() { return reply }
            }
            return try reader.handleEndOfInput()
        } catch {
            return nil
        }
    }

    @Test(
        "a response is parsed from pieces of any size",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
            ("HTTP/1.0 200 OK\r\n\r\nhello", "hello"), ("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", ""),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", "hello"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
                "0123456789"
            ),
            // Lines that a header could not have.
            ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{\n\u{0}\r}\n", "{\n\u{0}\r}\n"),
            // Invalid responses.
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", nil), ("HTTP/1.1 200 OK\r\nContent-Le", nil),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello", nil),
            ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", nil),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\nhello", nil),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", nil),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", nil),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", nil),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", nil),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", nil),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n", nil),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", nil),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", nil), ("SSH-2.0-x\r\n\r\n", nil), ("", nil),
            ("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 1000), nil),
        ] as [(String, String?)])
    func table(_ answer: String, body: String?) {
        for pieces in [1, 2, 3, 7, 1000] {
            #expect(read(answer, pieces: pieces).map { String(decoding: $0.body, as: UTF8.self) } == body, "\(pieces)")
        }
    }
}
