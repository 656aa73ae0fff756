import Bytes
import Testing

@testable import Networking
import Transports
@testable import WebSockets

/// Protocol components without a connection, at their limits.
@Suite("Protocol components") struct WebSocketUnitTests {
    // MARK: Closing

    @Test(
        "valid close codes are accepted, others are not",
        arguments: [
            (999, false), (1_000, true), (1_003, true), (1_004, false), (1_005, false), (1_006, false), (1_007, true),
            (1_014, true),
            (1_015, false), (2_999, false), (3_000, true), (4_999, true), (5_000, false), (0, false), (65_535, false),
        ] as [(UInt16, Bool)])
    func sendable(code: UInt16, isSendable: Bool) {
        let payload = ClosePayload(code: WebSocketCloseCode(rawValue: code), reason: "x")
        #expect(payload.code.isSendable == isSendable)
        #expect(payload.encoded == (isSendable ? [UInt8(code >> 8), UInt8(code & 0xFF), 0x78] : []))
        let decoded = [UInt8(code >> 8), UInt8(code & 0xFF), 0x78].withUnsafeBytes { ClosePayload.decode($0) }
        #expect(decoded == (isSendable ? .success(payload) : .failure(.closeCode)))
    }

    @Test("the codes are those of the registry")
    func codes() {
        let codes: [WebSocketCloseCode] = [
            .normal, .goingAway, .protocolError, .unsupportedData, .noStatus, .abnormal, .invalidPayload,
            .policyViolation,
            .messageTooBig, .mandatoryExtension, .internalError, .serviceRestart, .tryAgainLater,
        ]
        #expect(
            codes.map(\.rawValue) == [1000, 1001, 1002, 1003, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013])
        #expect(codes[0].description == "1000")
    }

    @Test(
        "a close payload is empty, or a code and a reason in UTF-8",
        arguments: [
            ([], .success(ClosePayload(code: .noStatus))), ([3], .failure(.closePayload)),
            ([3, 232], .success(ClosePayload(code: .normal))), ([3, 232, 0xC3], .failure(.invalidUTF8)),
            ([3, 232, 0xC3, 0xA9], .success(ClosePayload(code: .normal, reason: "\u{e9}"))),
            ([3, 232, 0xFF], .failure(.invalidUTF8)),
        ] as [([UInt8], Result<ClosePayload, ProtocolViolation>)])
    func closePayloads(bytes: [UInt8], result: Result<ClosePayload, ProtocolViolation>) {
        #expect(bytes.withUnsafeBytes { ClosePayload.decode($0) } == result)
    }

    @Test(
        "a reason is truncated to 123 bytes, between two characters",
        arguments: [
            (String(repeating: "x", count: 123), 125), (String(repeating: "x", count: 124), 125),
            (String(repeating: "x", count: 122) + "\u{e9}", 124), (String(repeating: "x", count: 121) + "\u{e9}", 125),
        ])
    func cut(reason: String, count: Int) {
        let bytes = ClosePayload(code: .normal, reason: reason).encoded
        #expect(bytes.count == count)
        #expect(Array(reason.utf8).starts(with: bytes[2...]))
        #expect((try? bytes.withUnsafeBytes { ClosePayload.decode($0) }.get()) != nil)
    }

    @Test("each violation has its code, and a distinct reason that fits into a close frame")
    func violations() {
        let codes = Dictionary(grouping: ProtocolViolation.allCases, by: \.code).mapValues { Set($0) }
        #expect(codes[.invalidPayload] == [.invalidUTF8, .badCompression])
        #expect(codes[.messageTooBig] == [.frameTooBig, .messageTooBig, .tooManyFragments])
        #expect(codes[.policyViolation] == [.tooManyControlFrames])
        #expect(codes.count == 4)
        #expect(codes[.protocolError]?.count == ProtocolViolation.allCases.count - 6)
        #expect(Set(ProtocolViolation.allCases.map(\.reason)).count == ProtocolViolation.allCases.count)
        #expect(ProtocolViolation.allCases.allSatisfy { $0.reason.utf8.count <= ClosePayload.maximumReason })
    }

    // MARK: Addresses and memory

    private func address(_ text: String) -> SocketAddress? { SocketAddress(literal: text, port: 7) }

    @Test("hosts are counted up to the limit, IPv6 networks as one, loopback not at all")
    func addresses() throws {
        let counter = AddressCounter(limit: 2)
        func enter(_ text: String) -> CountedConnection?? {
            switch counter.enter(address(text)) {
            case .admitted(let entry): .some(entry)
            case .refused: nil
            }
        }
        var entries: [CountedConnection?] = []
        for text in ["192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::ffff:1", "192.0.2.2"] {
            entries.append(try #require(enter(text)))
        }
        #expect(entries.allSatisfy { $0 != nil && $0?.client == nil })
        #expect(enter("192.0.2.1") == nil && enter("2001:db8:0:0:5::") == nil)
        #expect(enter("2001:db8:0:1::1") != nil)
        for text in ["127.0.0.1", "127.9.9.9", "::1"] {
            for _ in 0..<5 { #expect(try #require(enter(text)) == nil) }
        }
        entries[0] = nil
        let again = try #require(enter("192.0.2.1"))
        #expect(again != nil && enter("192.0.2.1") == nil)
        entries = []
        #expect(try #require(enter("192.0.2.1")) != nil)
        withExtendedLifetime(again) {}
        #expect(counter.enter(nil as SocketAddress?).isUncounted)
    }

    @Test("a client behind a proxy is identified, and counts unless it is on loopback")
    func clients() throws {
        let counter = AddressCounter(limit: 1)
        let client = try #require(IPAddress("192.0.2.9"))
        guard case .admitted(let entry?) = counter.enter(client) else {
            Issue.record("refused")
            return
        }
        #expect(entry.client == SocketAddress(host: "192.0.2.9", port: 0, isIPv6: false))
        guard case .refused = counter.enter(client) else {
            Issue.record("admitted")
            return
        }
        for _ in 0..<3 {
            guard case .admitted(let own?) = counter.enter(try #require(IPAddress("127.0.0.1"))) else {
                Issue.record("refused")
                return
            }
            #expect(own.client?.host == "127.0.0.1")
        }
        withExtendedLifetime(entry) {}
    }

    @Test(
        "an address is loopback when it is in 127.0.0.0/8, or ::1",
        arguments: [
            ("127.0.0.1", true), ("127.255.0.3", true), ("126.255.255.255", false), ("128.0.0.0", false), ("::1", true),
            ("::2", false),
            ("::", false), ("1::1", false), ("::ffff:127.0.0.1", true), ("::ffff:128.0.0.1", false), ("0.0.0.1", false),
        ])
    func loopback(text: String, isLoopback: Bool) throws {
        #expect(AddressKey(try #require(IPAddress(text))).isLoopback == isLoopback)
    }

    @Test("an IPv4 address is equal in both notations, and hosts differ by their addresses")
    func keys() throws {
        func key(_ text: String) throws -> AddressKey { AddressKey(try #require(IPAddress(text))) }
        #expect(try key("::ffff:192.0.2.1") == key("192.0.2.1"))
        #expect(try key("192.0.2.1") != key("192.0.2.2"))
        #expect(try key("2001:db8:1:2:3::") == key("2001:db8:1:2::4"))
        #expect(try key("2001:db8:1:2::") != key("2001:db8:1:3::"))
        #expect(IPAddress("localhost") == nil && IPAddress("192.0.2.1:80") == nil && IPAddress("::1%lo") == nil)
        for text in ["192.0.2.1", "2001:db8::1", "::", "0.0.0.0", "255.255.255.255", "1:2:3:4:5:6:7:8"] {
            #expect(try #require(IPAddress(text)).description == text)
        }
    }

    @Test("new connections are rejected only when their host, or the server, is at its memory limit")
    func memory() throws {
        var limits = WebSocketLimits()
        limits.bufferedBytes = 1_000_000
        limits.bufferedBytesPerHost = 300_000
        limits.bufferedBytesPerConnection = 200_000
        let memory = ServerMemory(limits, shared: nil)
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"))
        #expect(memory.refusal(of: one) == nil && memory.refusal(of: nil) == nil)
        var accounts = [memory.makeAccount(for: one), memory.makeAccount(for: one)]
        for account in accounts { #expect(account.adjustUsage(by: 150_000) == nil) }
        #expect(memory.refusal(of: one) == MemoryLimitExceeded(.address, 300_000))
        #expect(memory.refusal(of: other) == nil && memory.refusal(of: nil) == nil)
        #expect(accounts[0].adjustUsage(by: 50_001) == MemoryLimitExceeded(.connection, 200_000))
        accounts.removeLast()
        #expect(memory.refusal(of: one) == nil)
        #expect(accounts[0].bufferedBytes == 200_001)
        let alone = memory.makeAccount(for: nil)
        _ = alone.adjustUsage(by: 799_999)
        #expect(memory.refusal(of: other) == MemoryLimitExceeded(.server, 1_000_000))
        #expect(memory.refusal(of: nil) == MemoryLimitExceeded(.server, 1_000_000))
        accounts = []
        #expect(memory.refusal(of: one) == nil)
        // A quarter of all, unless it is set.
        limits.bufferedBytesPerHost = nil
        let quarter = ServerMemory(limits, shared: MemoryBudget(limit: 400_000))
        let account = quarter.makeAccount(for: one)
        _ = account.adjustUsage(by: 100_000)
        #expect(quarter.refusal(of: one) == MemoryLimitExceeded(.address, 100_000))
    }

    // MARK: Times

    @Test(
        "times are counted in beats of a quarter of the interval, rounded up",
        arguments: [
            (20_000, 20_000, 8, 6), (20_000, 20_001, 9, 6), (20_000, 1, 5, 6), (4, 4, 8, 30_000), (1, 1, 5, 30_000),
        ])
    func beats(ping: Int, pong: Int, giveUp: Int, message: Int) {
        var limits = WebSocketLimits()
        limits.pingInterval = .milliseconds(ping)
        limits.pongTimeout = .milliseconds(pong)
        let times = Keepalive.Times(limits)
        #expect(times.beat == max(.milliseconds(ping) / 4, .milliseconds(1)))
        #expect(times.ping == 4)
        #expect(Int(times.dropAfter) == giveUp)
        #expect(Int(times.message) == message)
        #expect(times.idle == 0)
        limits.idleTimeout = .milliseconds(ping)
        #expect(Keepalive.Times(limits).idle == (ping == 1 ? 1 : 4))
    }

    @Test(
        "the control frames of an average beat are accepted, and at least 16",
        arguments: [
            (200, 1_000), (4, 20), (3, 16), (0, 16),
        ])
    func controlFrames(perSecond: Int, most: Int) {
        var limits = WebSocketLimits()
        limits.controlFramesPerSecond = perSecond
        let times = Keepalive.Times(limits)
        var keepalive = Keepalive()
        for _ in 0..<2 {
            for _ in 0..<most {
                let isTaken = keepalive.countControlFrame(times)
                #expect(isTaken)
            }
            let isTaken = keepalive.countControlFrame(times)
            #expect(!isTaken)
            _ = keepalive.beat(times)
        }
    }

    @Test("a ping is overdue from its preceding beat on, unless input arrived")
    func overdue() {
        let times = Keepalive.Times(WebSocketLimits())
        var keepalive = Keepalive()
        var overdue: [Bool] = []
        for _ in 0..<5 {
            overdue.append(keepalive.isOverdue(times))
            _ = keepalive.beat(times)
        }
        #expect(overdue == [false, false, false, true, true])
        keepalive.hasReceivedInput = true
        #expect(!keepalive.isOverdue(times))
        _ = keepalive.beat(times)
        #expect(!keepalive.isOverdue(times))
    }

    @Test("an unfinished message ends the connection at its time limit, and a finished one restarts it")
    func unfinished() {
        let times = Keepalive.Times(WebSocketLimits())
        var keepalive = Keepalive()
        func beat(_ isUnfinished: Bool) -> Keepalive.Action {
            keepalive.hasReceivedInput = true
            return keepalive.beat(times, isUnfinished: isUnfinished)
        }
        for _ in 0..<5 {
            let action = beat(true)
            #expect(action == .nothing)
        }
        let whole = beat(false)
        #expect(whole == .nothing)
        var actions: [Keepalive.Action] = []
        for _ in 0..<6 { actions.append(beat(true)) }
        #expect(actions == Array(repeating: .nothing, count: 5) + [.closeUnfinished])
    }

    @Test("settings of compression are clamped to zlib's range")
    func bounded() {
        for (given, bits, level, threshold) in [
            (-1, 9, 1, 1), (8, 9, 8, 8), (9, 9, 9, 9), (10, 10, 9, 10), (15, 15, 9, 15), (16, 15, 9, 16),
        ] {
            var settings = WebSocketCompression()
            settings.serverMaxWindowBits = given
            settings.clientMaxWindowBits = given
            settings.level = given
            settings.threshold = given
            let bounded = settings.bounded
            #expect(bounded.serverMaxWindowBits == bits && bounded.clientMaxWindowBits == bits)
            #expect(bounded.level == level && bounded.threshold == threshold)
        }
    }

    // MARK: Answers

    @Test(
        "the first line of a rejection is sent, up to 200 bytes and without invisible characters",
        arguments: [
            ("text/plain", "no key\nand more", "no key"), (nil, "no key", "no key"),
            ("TEXT/PLAIN; charset=utf-8", " x \t", "x"),
            ("text/html", "<p>", nil), ("text/plain", "", nil), ("text/plain", "\n", nil),
            ("text/plain", "a\u{1b}[31mb\u{7}", "a[31mb"),
            ("text/plain", "a\u{200b}b\u{202e}", "ab"), ("text/plain", "a\u{b}b", "ab"),
        ] as [(String?, String, String?)])
    func reasons(type: String?, body: String, text: String?) {
        var headers = HTTPHeaders()
        if let type { headers.add("Content-Type", type) }
        #expect(Array(body.utf8).withUnsafeBytes { RejectionReason.text(headers, $0) } == text)
    }

    @Test("a long reason is truncated", arguments: [(200, 200), (201, 200), (1_000, 200)])
    func longReasons(count: Int, shown: Int) {
        let body = Array(repeating: UInt8(ascii: "x"), count: count)
        #expect(body.withUnsafeBytes { RejectionReason.text([:], $0) }?.utf8.count == shown)
        #expect(body.withUnsafeBytes { RejectionReason.isComplete([:], $0) })
        let cut = Array((String(repeating: "x", count: 199) + "\u{e9}").utf8)
        #expect(cut.withUnsafeBytes { RejectionReason.text([:], $0) } == String(repeating: "x", count: 199))
    }

    @Test(
        "a reason ends with its line, its length or 200 bytes",
        arguments: [
            ([:], "abc", false), ([:], "abc\n", true), (["Content-Length": "3"], "abc", true),
            (["Content-Length": "4"], "abc", false),
            (["Content-Length": "x"], "abc", false), (["Content-Type": "text/html"], "a", true),
            ([:], String(repeating: "x", count: 199), false), ([:], String(repeating: "x", count: 200), true),
        ] as [(HTTPHeaders, String, Bool)])
    func whole(headers: HTTPHeaders, body: String, isWhole: Bool) {
        #expect(Array(body.utf8).withUnsafeBytes { RejectionReason.isComplete(headers, $0) } == isWhole)
    }

    @Test("a response has its length and ends the connection; one to HEAD has no body, and a 101 or 204 has neither")
    func answers() {
        var response = HTTPResponse(status: 404, text: "no")
        response.headers.add("X-Bad", "a\r\nb")
        response.headers.add("X:Bad", "a")
        response.headers.add("X-Good", "a b")
        let head =
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nX-Good: a b\r\nContent-Length: 3\r\n"
            + "Connection: close\r\n\r\n"
        #expect(String(decoding: response.encoded(), as: UTF8.self) == head + "no\n")
        #expect(String(decoding: response.encoded(headOnly: true), as: UTF8.self) == head)
        #expect(
            String(decoding: HTTPResponse(status: 101).encoded(), as: UTF8.self)
                == "HTTP/1.1 101 Switching Protocols\r\n\r\n")
        #expect(
            String(decoding: HTTPResponse(status: 204, body: [1]).encoded(keepsAlive: true), as: UTF8.self)
                == "HTTP/1.1 204 No Content\r\n\r\n")
    }

    @Test("statuses have their phrases")
    func phrases() {
        let phrases = [
            101: "Switching Protocols", 200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized",
            403: "Forbidden",
            404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout", 413: "Content Too Large",
            414: "URI Too Long",
            426: "Upgrade Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
            500: "Internal Server Error",
            503: "Service Unavailable", 505: "HTTP Version Not Supported", 418: "Status",
        ]
        for (status, phrase) in phrases { #expect(HTTPResponse.phrase(status) == phrase) }
    }

    @Test("fields are found, listed and removed whatever the case of their names")
    func fields() {
        var headers: HTTPHeaders = ["A-Z": "1, 2 ,,3", "b": "x"]
        headers.add("a-z", "\t4 ")
        #expect(headers["A-z"] == "1, 2 ,,3" && headers["c"] == nil)
        #expect(headers.values("a-Z").count == 2)
        #expect(headers.list("A-Z") == ["1", "2", "3", "4"])
        headers.remove("a-z")
        #expect(headers["A-Z"] == nil && headers["B"] == "x" && headers.fields.count == 1)
        // Only letters have two cases.
        let others: HTTPHeaders = ["@": "1", "[": "2", "Z": "3", "A": "4"]
        #expect(others["`"] == nil && others["{"] == nil && others["z"] == "3" && others["a"] == "4")
    }

    @Test(
        "a frame header has 2, 4 or 10 bytes, and 4 more for a key",
        arguments: [
            (0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10),
        ])
    func headerLength(payload: Int, count: Int) {
        #expect(FrameEncoder.headerLength(payload: payload, isMasked: false) == count)
        #expect(FrameEncoder.headerLength(payload: payload, isMasked: true) == count + 4)
    }

    @Test(
        "a payload of an unexpected length is framed like an expected one",
        arguments: [0, 125, 126, 65_535, 65_536], [0, 126, 70_000])
    func unexpected(payload: Int, expected: Int) {
        let bytes = (0..<payload).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        for key in [nil, 0x1234_5678] as [UInt32?] {
            var buffer = ByteBuffer()
            buffer.append([9, 9] as [UInt8])
            let opening = FrameEncoder.open(&buffer, expecting: expected, isMasked: key != nil)
            buffer.append(bytes)
            FrameEncoder.close(opening, in: &buffer, opcode: .binary, maskingKey: key)
            var whole = ByteBuffer()
            whole.append([9, 9] as [UInt8])
            bytes.withUnsafeBytes { FrameEncoder.append(.binary, $0, maskingKey: key, to: &whole) }
            #expect(Array(buffer.bytes) == Array(whole.bytes))
            #expect(buffer.count == 2 + FrameEncoder.headerLength(payload: payload, isMasked: key != nil) + payload)
        }
    }
}

extension AddressCounter.Decision {
    /// Admitted without an entry.
    fileprivate var isUncounted: Bool { if case .admitted(nil) = self { true } else { false } }
}
