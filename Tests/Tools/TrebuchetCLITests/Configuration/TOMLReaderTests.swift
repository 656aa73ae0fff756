import Testing

@testable import TrebuchetCLI

/// The subset of TOML of configuration files.
@Suite struct TOMLReaderTests {
    private static func keys(_ text: String) -> [String] { TOMLDocument(Array(text.utf8)).entries.map(\.key) }

    /// The problems as `line:column reason`.
    private static func problems(_ text: String) -> [String] { problems(Array(text.utf8)) }

    private static func problems(_ bytes: [UInt8]) -> [String] {
        let document = TOMLDocument(bytes)
        return document.problems.map { problem in
            let position = document.position(of: problem.offset)
            return "\(position.line):\(position.column) \(problem.reason)"
        }
    }

    @Test(
        "values are read",
        arguments: [
            (#""text""#, .string("text")), ("\"\"", .string("")), ("''", .string("")),
            (#""a\tb\n\"c\" \\ \b\f\r""#, .string("a\tb\n\"c\" \\ \u{8}\u{C}\r")),
            (#""\u00e9\U0001F600""#, .string("é😀")), (#""é # no comment""#, .string("é # no comment")),
            (#"'C:\Users\n'"#, .string(#"C:\Users\n"#)), (#"'"quoted"'"#, .string(#""quoted""#)),
            ("\"a\tb\"", .string("a\tb")),
            ("0", .integer(0)), ("8080", .integer(8080)), ("+5", .integer(5)), ("-17", .integer(-17)),
            ("1_000", .integer(1000)), ("9223372036854775807", .integer(.max)),
            ("-9223372036854775808", .integer(.min)),
            ("0.5", .float(0.5)), ("-1.25e3", .float(-1250)), ("1e2", .float(100)), ("6.02_2E+2", .float(602.2)),
            ("true", .boolean(true)), ("false", .boolean(false)),
            ("[]", .array([])), ("[ ]", .array([])), (#"["a",'b']"#, .array([.string("a"), .string("b")])),
            ("[1, 2.0, true,]", .array([.integer(1), .float(2), .boolean(true)])),
            ("[\n  'a', # first\n\n  # second\n  'b' # no comma\n]", .array([.string("a"), .string("b")])),
            ("[\r\n'a'\r\n]", .array([.string("a")])),
        ] as [(String, TOMLDocument.Value)])
    func values(text: String, value: TOMLDocument.Value) {
        for end in ["", "\n", "  # comment", "\r\n"] {
            let document = TOMLDocument(Array("key = \(text)\(end)".utf8))
            #expect(document.problems.isEmpty, "\(document.problems)")
            #expect(document.entries.map(\.value) == [value])
        }
    }

    @Test("keys, blank lines and comments are read, with lines that end with or without a carriage return")
    func lines() {
        let text = "# first\r\n\n  port=1\n\t\"quoted key\"\t=\t2 # é\r\n'literal' = 3\n-_9 = 4\n12 = 5"
        #expect(Self.keys(text) == ["port", "quoted key", "literal", "-_9", "12"])
        #expect(Self.problems(text) == [])
        let document = TOMLDocument(Array(text.utf8))
        #expect(document.entries.map { document.position(of: $0.offset).line } == [3, 4, 5, 6, 7])
        #expect(document.entries.map { document.position(of: $0.valueOffset).column } == [8, 17, 13, 7, 6])
        #expect(Self.problems("") == [] && Self.keys("") == [])
    }

    @Test(
        "a text that is not in the subset is a problem with its line, column and reason",
        arguments: [
            // Valid TOML that is not supported.
            ("\n[table]", "2:1 tables are not supported"), ("  [[array]]", "1:3 tables are not supported"),
            ("a.b = 1", "1:1 dotted keys are not supported"), ("a . 'b' = 1", "1:1 dotted keys are not supported"),
            ("a = {b = 1}", "1:5 inline tables are not supported"),
            ("a = [[1]]", "1:6 arrays in arrays are not supported"),
            ("a = \"\"\"x\"\"\"", "1:5 strings of several lines are not supported"),
            ("a = '''x'''", "1:5 strings of several lines are not supported"),
            ("a = 1979-05-27", "1:5 dates and times are not supported"),
            ("a = 1979-05-27T07:32:00Z", "1:5 dates and times are not supported"),
            ("a = 07:32:00", "1:5 dates and times are not supported"),
            ("a = 0xff", "1:5 only decimal numbers are supported"), ("a = 0o7", "1:5 only decimal numbers"),
            ("a = 0b1", "1:5 only decimal numbers"), ("a = inf", "1:5 inf and nan are not supported"),
            ("a = -nan", "1:5 inf and nan are not supported"),
            // Invalid TOML.
            ("port", "1:5 expected '=' after the key 'port'"), ("port 1", "1:6 expected '=' after the key 'port'"),
            ("port: 1", "1:5 expected '=' after the key 'port'"), ("= 1", "1:1 expected a key"),
            ("é = 1", "1:1 expected a key"), ("a = ", "1:5 expected a value"), ("a = # none", "1:5 expected a value"),
            ("a =\n1", "1:4 expected a value"), ("a = 1 2", "1:7 expected the end of the line after the value"),
            ("a = 1 b = 2", "1:7 expected the end of the line after the value"),
            ("a = 'é' x", "1:9 expected the end of the line after the value"),
            ("a = yes", "1:5 'yes' is not a value: write strings in quotation marks"),
            ("a = True", "1:5 'True' is not a value"), ("a = 127.0.0.1", "1:5 '127.0.0.1' is not a value"),
            ("a = /var/lib", "1:5 expected a value: write strings in quotation marks"),
            ("a = 08", "1:5 08 is not a number: it must not begin with 0"), ("a = 1__0", "1:5 '1__0' is not a value"),
            ("a = _1", "1:5 '_1' is not a value"), ("a = 1_", "1:5 '1_' is not a value"),
            ("a = 1.", "1:5 '1.' is not a value"), ("a = .5", "1:5 '.5' is not a value"),
            ("a = 1e", "1:5 '1e' is not a value"), ("a = +", "1:5 '+' is not a value"),
            ("a = 9223372036854775808", "1:5 9223372036854775808 is too large"),
            ("a = 1e999", "1:5 1e999 is too large"),
            ("a = \(String(repeating: "1", count: 65))", "1:5 not a value"),
            ("a = \"open", "1:5 the string is not closed"), ("a = 'open", "1:5 the string is not closed"),
            ("a = \"open\nb", "1:5 the string is not closed in its line"),
            ("a = 'open\r\nb", "1:5 the string is not closed in its line"),
            (#"a = "\x41""#, "1:6 unknown escape"), (#"a = "C:\dir""#, "1:8 unknown escape"),
            (#"a = "\u12""#, "1:6 the escape needs 4 hexadecimal digits"),
            (#"a = "\uD800""#, "1:6 the escape needs 4 hexadecimal digits of a Unicode scalar"),
            (#"a = "\U00110000""#, "1:6 the escape needs 8"), (#"a = "\u+123""#, "1:6 the escape needs 4"),
            ("a = \"\\", "1:6 unknown escape"), ("a = \"\u{1}\"", "1:6 a control character in a string"),
            ("a = '\u{7F}'", "1:6 a control character in a string"),
            ("# \u{0}", "1:3 a control character in a comment"),
            ("# a\rb", "1:4 a control character in a comment"), ("a = 1\rb = 2", "1:6 a carriage return without"),
            ("\ra = 1", "1:1 a carriage return without a line feed"), ("a = [1", "1:5 the array is not closed"),
            ("a = [1 2]", "1:8 expected ',' or ']' in the array"), ("a = [,]", "1:6 expected a value"),
            ("a = [1,,2]", "1:8 expected a value"), ("a = ]", "1:5 expected a value"),
            ("a = 1\nb = 2\n\"a\" = 3", "3:1 duplicate key 'a'; the first is in line 1"),
        ])
    func problems(text: String, problem: String) {
        let found = Self.problems(text)
        #expect(found.first?.hasPrefix(problem) == true, "\(found)")
    }

    @Test(
        "after a problem the next line is read",
        arguments: [
            ("a = yes\nb = 1\nc\nd = 2", ["b", "d"], ["1:5", "3:2"]),
            ("a = [\n 1,\n yes,\n 2,\n]\nb = 1", ["b"], ["3:2"]), ("a = [1, yes]\nb = 1", ["b"], ["1:9"]),
            ("a = [[1],\n [2]]\nb = 1", ["b"], ["1:6"]),
            ("a = [1,\nb = 2\nc = 3", ["b", "c"], ["1:5"]), ("a = [1\nb = 2", ["b"], ["1:5"]),
            ("a = \"\"\"\nb = 1\n\\\"\"\"\"\nc = 1", ["c"], ["1:5"]), ("a = '''\nb = 1'''\nc = 1", ["c"], ["1:5"]),
            ("a = \"x\\\nb = 1", ["b"], ["1:7"]), ("a = 1\na = 2\nb = 3", ["a", "b"], ["2:1"]),
            ("= 1\n= 2\nb = 3", ["b"], ["1:1", "2:1"]), ("\ra\n\rb\nc = 1", ["c"], ["1:1", "2:1"]),
            // The keys of a table are not those of the file.
            ("a = 1\n[x]\nb = 1\nc = yes\n", ["a"], ["2:1", "4:5"]),
        ])
    func recovery(text: String, keys: [String], places: [String]) {
        #expect(Self.keys(text) == keys)
        #expect(Self.problems(text).map { String($0.prefix { $0 != " " }) } == places)
    }

    @Test("invalid UTF-8 is a problem with its place", arguments: [[0xFF], [0xC3], [0xED, 0xA0, 0x80]] as [[UInt8]])
    func encoding(bytes: [UInt8]) {
        let text = Array("a = 'é'\nb = '".utf8) + bytes + Array("'".utf8)
        #expect(Self.problems(text) == ["2:6 the file is not valid UTF-8"])
    }

    @Test("a text has at most 100 problems, and is read to its end whatever it contains")
    func bounds() {
        #expect(Self.problems(String(repeating: "x\n", count: 1_000)).count == 100)
        let pieces = [
            "a", "=", " ", "\n", "\r", "[", "]", "\"", "'", "\\", "{", "#", ",", ".", "1", "é", "\"\"\"", "\t",
        ]
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let count = Int.random(in: 0...30, using: &random)
            let text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            let document = TOMLDocument(Array(text.utf8))
            #expect(document.problems.count <= 100 && document.entries.count <= count, "\(text)")
        }
    }
}
