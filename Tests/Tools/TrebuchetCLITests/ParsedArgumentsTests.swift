import Commands
import Testing
import TrebuchetServices

@testable import TrebuchetCLI

@Suite struct ParsedArgumentsTests {
    private static let command = CommandSpec(
        name: "try", summary: "try it", operands: "<a>", operandCount: 1...2,
        options: [OptionSpec("--port", "PORT", "a port"), OptionSpec("--json", nil, "JSON")], run: { _ in })

    @Test("options and operands are distinguished, whatever their order")
    func order() throws {
        for line in [
            ["--port", "1", "x", "--json"], ["x", "--port=1", "--json"], ["--json", "--port", "1", "--", "x"],
        ] {
            let parsed = try ParsedArguments(line, for: Self.command)
            #expect(parsed.operands == ["x"])
            #expect(try parsed.int("--port", in: 0...65535) == 1)
            #expect(parsed.has("--json"))
        }
    }

    @Test("--trusted-proxies accepts addresses and ranges, and explains the form for anything else")
    func trustedProxies() throws {
        #expect(
            try ServeCommand.trustedProxies("127.0.0.1, ::1,10.0.0.0/8") == ["127.0.0.1", "::1", "10.0.0.0/8"])
        for list in ["", "localhost", "10.0.0.0/8,", "0.0.0.0/0"] {
            let error = #expect(throws: UsageError.self) { _ = try ServeCommand.trustedProxies(list) }
            #expect(error?.description.hasPrefix("--trusted-proxies: '") == true)
        }
        #expect(ServeCommand.spec.help.contains("--trusted-proxies LIST"))
    }

    @Test("--origins accepts origins and *, and explains the form for anything else")
    func origins() throws {
        #expect(try ServeCommand.origins("*") == ["*"])
        #expect(
            try ServeCommand.origins("http://localhost:3000, https://app.example")
                == ["http://localhost:3000", "https://app.example"])
        for list in ["", "localhost:3000", "https://app.example/", "http://a,,http://b", "null", "http://*"] {
            let error = #expect(throws: UsageError.self) { _ = try ServeCommand.origins(list) }
            #expect(error?.description.contains("write scheme://host or scheme://host:port") == true, "\(list)")
        }
    }

    @Test("a negative number is an operand")
    func negative() throws {
        #expect(try ParsedArguments(["x", "-3"], for: Self.command).operands == ["x", "-3"])
    }

    @Test(
        "an invalid argument is an error with advice",
        arguments: [
            (["x", "--prot", "1"], "did you mean --port?"), (["x", "--port"], "--port requires a value: --port PORT"),
            (["x", "--json=1"], "--json takes no value"), ([], "usage: trebuchet try [options] <a>"),
            (["x", "y", "z"], "3 operands given"), ([], "<a> is missing\n"),
            (["x", "-zzz"], "unknown option -zzz; put operands that begin with a dash after --\n"),
            (["x", "--zzzzzzzz"], "unknown option --zzzzzzzz\n"),
        ])
    func refused(line: [String], text: String) {
        let error = #expect(throws: UsageError.self) { _ = try ParsedArguments(line, for: Self.command) }
        #expect(error?.description.contains(text) == true, "\(String(describing: error))")
    }

    @Test("a number out of its range is refused with the range")
    func range() throws {
        let parsed = try ParsedArguments(["x", "--port", "70000"], for: Self.command)
        let error = #expect(throws: UsageError.self) { _ = try parsed.int("--port", in: 0...65535) }
        #expect(error?.description == "--port must be a number between 0 and 65535, not '70000'")
    }

    @Test(
        "edit distances are computed",
        arguments: [("abc", "abc", 0), ("port", "prot", 2), ("", "ab", 2), ("serve", "serv", 1)])
    func distance(left: String, right: String, edits: Int) {
        #expect(NearestMatch.distance(left, right) == edits)
    }

    @Test(
        "server addresses are parsed",
        arguments: [
            ("ws://localhost:8080", "localhost", 8080, "/"), ("ws://[::1]:9/", "::1", 9, "/"),
            ("ws://a.b", "a.b", 80, "/"), ("WSS://a.b/realtime?x=1", "a.b", 443, "/realtime?x=1"),
            ("https://a.b/x", "a.b", 443, "/x"), ("http://a.b:81", "a.b", 81, "/"),
        ])
    func url(text: String, host: String, port: Int, target: String) throws {
        let url = try RemoteURL(text)
        #expect(url.host == host)
        #expect(url.port == port)
        #expect(url.target == target)
    }

    @Test(
        "an invalid server address is refused",
        arguments: ["ftp://a", "ws://", "ws://a:x", "ws://u:p@a", "ws://a/#b", "a:1"])
    func badURL(text: String) {
        #expect(throws: UsageError.self) { _ = try RemoteURL(text) }
    }
}
