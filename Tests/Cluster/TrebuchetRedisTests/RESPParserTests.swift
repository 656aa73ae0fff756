import Platform
import Testing

@testable import TrebuchetRedis

/// Tests of the parser: bytes in, values out.
struct RESPParserTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let input: String
        let values: [RESPValue]
        var testDescription: String { input.debugDescription }
    }

    static let good = [
        Row(input: "+OK\r\n", values: [.simple(Array("OK".utf8))]),
        Row(input: "+\r\n", values: [.simple([])]),
        Row(input: "-ERR no such\r\n", values: [.error(RedisErrorReply("ERR no such"))]),
        Row(input: "!5\r\nERR a\r\n", values: [.error(RedisErrorReply("ERR a"))]),
        Row(input: ":0\r\n:-7\r\n:+3\r\n", values: [.integer(0), .integer(-7), .integer(3)]),
        Row(
            input: ":9223372036854775807\r\n:-9223372036854775808\r\n",
            values: [.integer(.max), .integer(.min)]),
        Row(input: "$5\r\na\r\nbc\r\n", values: [.bulk(Array("a\r\nbc".utf8))]),
        Row(input: "$0\r\n\r\n", values: [.bulk([])]),
        Row(input: "=7\r\ntxt:a b\r\n", values: [.bulk(Array("a b".utf8))]),
        Row(input: "$-1\r\n*-1\r\n_\r\n", values: [.null, .null, .null]),
        Row(input: "#t\r\n#f\r\n", values: [.boolean(true), .boolean(false)]),
        Row(
            input: ",1.5\r\n,-2e3\r\n,inf\r\n,-inf\r\n",
            values: [1.5, -2_000, .infinity, -.infinity].map { .double($0) }),
        Row(input: "(-12345678901234567890123\r\n", values: [.bigNumber(Array("-12345678901234567890123".utf8))]),
        Row(input: "*0\r\n~0\r\n%0\r\n", values: [.array([]), .set([]), .map([])]),
        Row(
            input: "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
            values: [.array([.array([.integer(1)]), .bulk([UInt8(ascii: "x")])])]),
        Row(
            input: "%1\r\n+a\r\n~2\r\n_\r\n#t\r\n",
            values: [.map([.simple([UInt8(ascii: "a")]), .set([.null, .boolean(true)])])]),
        Row(
            input: ">2\r\n+a\r\n:1\r\n+b\r\n",
            values: [
                .push([.simple([UInt8(ascii: "a")]), .integer(1)]), .simple([UInt8(ascii: "b")]),
            ]),
        // Attributes of a value are skipped at any depth.
        Row(input: "|1\r\n+ttl\r\n:9\r\n+b\r\n", values: [.simple([UInt8(ascii: "b")])]),
        Row(input: "*2\r\n|1\r\n+ttl\r\n:9\r\n:1\r\n:2\r\n", values: [.array([.integer(1), .integer(2)])]),
    ]

    @Test("each kind of value is parsed, in one piece and byte by byte", arguments: good)
    func kinds(_ row: Row) throws {
        for piece in [row.input.utf8.count, 1, 2, 3] {
            let outcome = Self.parse(Array(row.input.utf8), pieces: { piece })
            #expect(outcome.values == row.values, "in pieces of \(piece)")
            #expect(outcome.violation == nil)
            #expect(outcome.buffered == 0)
        }
    }

    static let bad = [
        "\r\n", "\n", "+OK\n", "+O\rK\r\n", "?\r\n", "hello\r\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n",
        ":--1\r\n",
        "$\r\n", "$-2\r\n", "$+1\r\na\r\n", "$1\r\nab\r\n", "$2\r\na\r\n\r\n", "$?\r\n", "*?\r\n", "*-2\r\n", "#\r\n",
        "#x\r\n", ",\r\n",
        ",0x1p3\r\n", ",nan(1)\r\n", "(\r\n", "(1.5\r\n", "_x\r\n", "=3\r\ntxt\r\n", "=4\r\ntxt.\r\n", "!-1\r\n",
        "*1\r\n>1\r\n:1\r\n",
        "~-1\r\n", "%-1\r\n",
    ]

    @Test("invalid RESP ends the connection, and no later bytes are parsed", arguments: bad)
    func refused(_ input: String) {
        for piece in [100, 1] {
            let outcome = Self.parse(Array((input + "+OK\r\n+OK\r\n").utf8), pieces: { piece })
            #expect(outcome.violation != nil)
            #expect(outcome.values == [])
            #expect(outcome.buffered == 0)
        }
    }

    static let small: RESPLimits = {
        var limits = RESPLimits()
        (limits.lineBytes, limits.bulkBytes, limits.answerBytes, limits.elements, limits.depth) = (16, 20, 30, 6, 3)
        return limits
    }()

    @Test(
        "each limit is exact to the byte",
        arguments: [
            ("+1234567890123\r\n", true), ("+12345678901234\r\n", false),
            ("$20\r\n12345678901234567890\r\n", true), ("$21\r\n", false),
            ("*2\r\n$20\r\n12345678901234567890\r\n$10\r\n1234567890\r\n", true),
            ("*2\r\n$20\r\n12345678901234567890\r\n$11\r\n", false),
            ("*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", true), ("*7\r\n", false), ("%3\r\n", true),
            ("%4\r\n", false),
            ("*3\r\n*3\r\n", true), ("*3\r\n*4\r\n", false), ("%9223372036854775807\r\n", false),
            ("*1\r\n*1\r\n*1\r\n:1\r\n", true), ("*1\r\n*1\r\n*1\r\n*1\r\n", false),
        ])
    func limits(_ input: String, isTaken: Bool) {
        for piece in [100, 1] {
            let outcome = Self.parse(Array(input.utf8), limits: Self.small, pieces: { piece })
            #expect((outcome.violation == nil) == isTaken, "in pieces of \(piece): \(outcome)")
        }
    }

    @Test("a line without an end is refused before it is buffered")
    func endlessLine() {
        let outcome = Self.parse([UInt8](repeating: UInt8(ascii: "+"), count: 1_000), limits: Self.small) { 7 }
        #expect(outcome.violation != nil)
        #expect(outcome.most <= Self.small.lineBytes)
    }

    @Test("the limits apply to each response separately")
    func anew() {
        let input = Array(String(repeating: "$20\r\n12345678901234567890\r\n", count: 50).utf8)
        #expect(Self.parse(input, limits: Self.small) { 5 }.values.count == 50)
    }

    @Test(
        "altered and truncated inputs give the same outcome however they are split, within the limits",
        arguments: 0..<8 as Range<UInt64>)
    func mutations(_ seed: UInt64) {
        var random = RandomSource(seed: seed)
        let seeds = (Self.good.map(\.input) + Self.bad).map { Array($0.utf8) }
        for _ in 0..<400 {
            var input = (0..<Int.random(in: 1...6, using: &random)).flatMap { _ in seeds.randomElement(using: &random)!
            }
            for _ in 0..<Int.random(in: 0...4, using: &random) where !input.isEmpty {
                let at = input.indices.randomElement(using: &random)!
                switch Int.random(in: 0..<4, using: &random) {
                case 0: input[at] = UInt8.random(in: 0...255, using: &random)
                case 1: input.remove(at: at)
                case 2: input.insert(contentsOf: input[at...].prefix(9), at: at)
                default: input[at] = Array("+-:$*%~>|!=(,#_\r\n0129".utf8).randomElement(using: &random)!
                }
            }
            let whole = Self.parse(input, limits: Self.small) { input.count }
            let cut = Self.parse(input, limits: Self.small) { Int.random(in: 1...9, using: &random) }
            #expect(whole == cut, "\(seed): \(String(decoding: input, as: UTF8.self).debugDescription)")
            let limits = Self.small
            #expect(cut.most <= max(limits.lineBytes, limits.bulkBytes + 2) + limits.elements, "\(seed)")
        }
    }

    /// The outcome of an input; the maximum number of buffered bytes does not count.
    struct Outcome: Equatable {
        var values: [RESPValue] = []
        var violation: RESPViolation?
        var buffered = 0
        var most = 0

        /// Compared by their text, in which all NaNs are equal.
        static func == (one: Self, other: Self) -> Bool {
            "\(one.values)" == "\(other.values)" && one.violation == other.violation && one.buffered == other.buffered
        }
    }

    static func parse(_ input: [UInt8], limits: RESPLimits = RESPLimits(), pieces: () -> Int) -> Outcome {
        var parser = RESPParser(limits: limits)
        var outcome = Outcome()
        var at = 0
        while at < input.count {
            let piece = Array(input[at..<min(input.count, at + max(1, pieces()))])
            at += piece.count
            piece.withUnsafeBytes { bytes in
                var rest = bytes
                while outcome.violation == nil || !rest.isEmpty {
                    do throws(RESPViolation) {
                        guard let value = try parser.next(&rest) else { break }
                        outcome.values.append(value)
                    } catch {
                        outcome.violation = outcome.violation ?? error
                        break
                    }
                }
            }
            outcome.most = max(outcome.most, parser.bufferedCount)
        }
        outcome.buffered = parser.bufferedCount
        return outcome
    }
}
