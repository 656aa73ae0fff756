import Testing

@testable import WebSockets

@Suite("HTTP request bodies (RFC 9112 §6, §7.1)")
struct HTTPBodyReaderTests {
    private static let limits = HTTPBodyLimits(bytes: 10, time: .seconds(1), settings: ("bytes", "time"))

    /// The body and the input after it, or the status of the rejection; nil for an incomplete body.
    private func read(_ text: String, _ framing: HTTPBodyFraming, pieces: Int) -> Result<[String], HTTPRejection>? {
        do throws(HTTPRejection) {
            var reader = try HTTPBodyReader(framing, Self.limits)
            var (body, rest) = ([UInt8](), Array(text.utf8)[...])
            var isFirst = true
            while isFirst || !rest.isEmpty, !reader.isComplete {
                isFirst = false
                let piece = Array(rest.prefix(pieces))
                let outcome: Result<Int, HTTPRejection> = piece.withUnsafeBytes { bytes in
                    Result { () throws(HTTPRejection) in try reader.read(bytes, into: &body) }
                }
                let count = try outcome.get()
                if count != piece.count, !reader.isComplete { Issue.record("\(count) of \(piece.count) bytes") }
                rest = rest.dropFirst(count)
            }
            guard reader.isComplete else { return nil }
            return .success([body, Array(rest)].map { String(decoding: $0, as: UTF8.self) })
        } catch {
            return .failure(error)
        }
    }

    @Test(
        "a body ends where its framing says, whether it arrives at once or byte by byte",
        arguments: [
            (.empty, "", ["", ""]), (.empty, "GET", ["", "GET"]), (.length(3), "abcGET", ["abc", "GET"]),
            (.length(3), "abc", ["abc", ""]), (.length(3), "ab", nil), (.length(10), "0123456789", ["0123456789", ""]),
            (.chunked, "0\r\n\r\n", ["", ""]), (.chunked, "3\r\nabc\r\n0\r\n\r\nGET", ["abc", "GET"]),
            (.chunked, "1\r\na\r\n0002\r\nbc\r\n000\r\n\r\n", ["abc", ""]),
            (.chunked, "A\r\n0123456789\r\n0\r\n\r\n", ["0123456789", ""]),
            (.chunked, "a\r\n0123456789\r\n0\r\n\r\n", ["0123456789", ""]),
            (.chunked, "1;a=\"b\"\r\na\r\n0 ; x\r\nA: b\r\nC:\r\n\r\nGET", ["a", "GET"]),
            (.chunked, "2\r\n\r\n\r\n0\r\n\r\n", ["\r\n", ""]), (.chunked, "3\r\nabc\r\n0\r\n", nil),
            (.chunked, "", nil),
        ] as [(HTTPBodyFraming, String, [String]?)])
    func bodies(framing: HTTPBodyFraming, text: String, wanted: [String]?) throws {
        for pieces in [1, 2, 1_000] { #expect(try read(text, framing, pieces: pieces)?.get() == wanted) }
    }

    @Test(
        "malformed chunks are rejected with 400, too many bytes with 413",
        arguments: [
            (.chunked, "\r\n", 400), (.chunked, "x\r\n", 400), (.chunked, "-1\r\n", 400), (.chunked, "+1\r\n", 400),
            (.chunked, " 1\r\n", 400), (.chunked, "0x1\r\n", 400), (.chunked, "1\na", 400), (.chunked, "1\r\r", 400),
            (.chunked, "1\r\nab\r\n", 400), (.chunked, "1\r\na\n", 400), (.chunked, "1\r\na\r\n\r\n", 400),
            (.chunked, "1;\n", 400), (.chunked, "1;\u{0}", 400), (.chunked, "0\r\n\n", 400),
            (.chunked, "0\r\nA: b\n", 400),
            (.chunked, "0\r\n\r\r", 400), (.chunked, "00000000000000001\r\n", 400),
            (.chunked, "b\r\n", 413), (.chunked, "ffffffffffffffff\r\n", 413),
            (.chunked, "9\r\n012345678\r\n2\r\n", 413),
            (.length(11), "", 413), (.length(.max), "", 413),
        ] as [(HTTPBodyFraming, String, Int)])
    func rejected(framing: HTTPBodyFraming, text: String, status: Int) {
        for pieces in [1, 1_000] {
            guard case .failure(let rejection)? = read(text, framing, pieces: pieces) else {
                Issue.record("accepted")
                continue
            }
            #expect(rejection.status == status)
        }
    }

    @Test("extensions and trailers have a limit of their sizes")
    func ignored() {
        let line = "A: \(String(repeating: "x", count: 1_000))\r\n"
        let long = "0\r\n" + String(repeating: line, count: 17) + "\r\n"
        guard case .failure(let rejection)? = read(long, .chunked, pieces: 1_000) else {
            Issue.record("accepted")
            return
        }
        #expect(rejection.status == 400)
        let fitting = "0\r\n" + String(repeating: line, count: 16) + "\r\n"
        #expect(read(fitting, .chunked, pieces: 1_000) != nil)
    }
}
