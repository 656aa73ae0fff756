import Testing

struct TextRulesTests {
    @Test("a source file of 15 lines is short, one of 16 is not, and tests do not count")
    func short() {
        let files = [("Sources/G/A/A.swift", 15), ("Sources/G/A/B.swift", 16), ("Tests/Base/ATests/A.swift", 1)].map {
            SourceText(path: $0, String(repeating: "let a = 1\n", count: $1))
        }
        #expect(TextRules.short(files).map(\.path) == ["Sources/G/A/A.swift"])
    }

    @Test("unchecked Sendable types of the sources are counted, not those of tests, comments and literals")
    func uncheckedSendables() {
        let text = """
            /// `@unchecked Sendable`: only on its reactor.
            final class A: @unchecked Sendable {}
            extension B: @unchecked Sendable {}
            let text = "@unchecked Sendable"
            @exclusivity(unchecked) var a = 1
            """
        let files = ["Sources/G/A/A.swift", "Tests/Base/ATests/A.swift"].map { SourceText(path: $0, text) }
        #expect(TextRules.uncheckedSendables(in: files) == 2)
    }

    @Test("a placeholder file is found")
    func placeholder() {
        #expect(TextRules.findings(in: SourceText(path: "Sources/G/A/Placeholder.swift", "")).count == 1)
    }

    @Test(
        "reminders are found in sources",
        arguments: [
            ("// TODO: more", true), ("/* FIXME */", true), ("let a = \"XXX\"", true), ("let methodology = 1", false),
            ("let TODOLIST = 1", false),
        ])
    func leftovers(text: String, isFound: Bool) {
        let findings = TextRules.findings(in: SourceText(path: "Sources/G/A/A.swift", "\n" + text))
        #expect(findings.map(\.line) == (isFound ? [2] : []))
        #expect(TextRules.findings(in: SourceText(path: "Tests/Base/ATests/A.swift", text)).isEmpty)
    }

    @Test(
        "an unchecked assertion to the compiler needs a comment near it",
        arguments: [
            ("final class A: @unchecked Sendable {}", true),
            ("nonisolated(unsafe) var a = 1", true),
            ("let a = unsafeBitCast(b, to: C.self)", true),
            ("actor.assumeIsolated { _ in }", true),
            ("nonisolated(unsafe) var a = 1  // Guarded by the lock.", false),
            ("/// Only the reactor's thread touches it.\nfinal class A: @unchecked Sendable {}", false),
            ("// Why.\na()\nb()\nnonisolated(unsafe) var a = 1", false),
            ("// Too far.\na()\nb()\nc()\nnonisolated(unsafe) var a = 1", true),
            ("let a = \"unsafeBitCast\"", false),
            ("final class A: Sendable {}", false),
        ])
    func promises(text: String, isFound: Bool) {
        for path in ["Sources/G/A/A.swift", "Tests/Base/ATests/A.swift"] {
            #expect(TextRules.findings(in: SourceText(path: path, text)).isEmpty != isFound)
        }
    }

    @Test(
        "a service method with a secret as argument is @Redacted",
        arguments: [
            ("distributed func leave(token: String?) {}", true),
            ("distributed func commit(\n    _ all: [Int], from client: String\n) async {}", true),
            ("@Redacted\ndistributed func leave(token: String?) {}", false),
            ("/// It.\n@Redacted distributed func leave(refreshToken: String?) {}", false),
            ("distributed func leave(tokens: Int) {}", false), ("func leave(token: String) {}", false),
        ])
    func secrets(text: String, isFound: Bool) {
        let path = "Sources/Services/TrebuchetServices/A.swift"
        #expect(TextRules.openSecrets(in: SourceText(path: path, text)).isEmpty != isFound)
    }

    @Test(
        "only one file writes to the standard streams",
        arguments: [
            ("print(a)", true), ("    if a { print(b, terminator: \"\") }", true), ("Swift.print(a)", true),
            ("FileHandle.standardError.write(a)", true), ("_ = write(2, a, 1)", true),
            ("write(STDERR_FILENO, a, 1)", true), ("fputs(a, stderr)", true),
            ("Console.print(a)", false), ("func print(_ a: Int) {}", false), ("// print(a)", false),
            ("reprint(a)", false), ("write(pipe, a, 1)", false), ("isatty(STDERR_FILENO)", false),
            ("process.standardError = FileHandle.nullDevice", false),
        ])
    func output(text: String, isFound: Bool) {
        for path in ["Sources/G/A/A.swift", "Benchmarks/A.swift"] {
            #expect(TextRules.ownOutput(SourceText(path: path, text)).isEmpty != isFound)
        }
        for path in [
            "Sources/Base/Platform/StandardStream.swift", "Sources/Tools/GenerateTool/A.swift",
            "Tests/Base/ATests/A.swift",
        ] {
            #expect(TextRules.ownOutput(SourceText(path: path, text)).isEmpty)
        }
    }

    @Test(
        "an echoed text is cut by bytes",
        arguments: [
            (#"let a = "'\(name.prefix(64))' is none""#, true), ("let a = String(reason.prefix(512))", true),
            (#"let a = "\(name.prefix(ActorName.longest))""#, true), (#"let a = "\(name.prefix(bytes: 64))""#, false),
            ("let a = String(decoding: text.utf8.prefix(64), as: UTF8.self)", false), ("let a = all.prefix(3)", false),
        ])
    func uncut(text: String, isFound: Bool) {
        #expect(TextRules.uncut(in: SourceText(path: "Sources/Server/Trebuchet/A.swift", text)).isEmpty != isFound)
    }

    @Test(
        "a test needs a sentence for a name",
        arguments: [
            ("@Test func a() {}", true),
            ("@Test(.timeLimit(.minutes(5))) func a() {}", true),
            ("@Test(\"word\") func a() {}", true),
            ("@Test(\"\") func a() {}", true),
            ("@Test(\"one thing holds\") func a() {}", false),
            ("@Test(\n    \"one thing holds\",\n    arguments: [1])\nfunc a(b: Int) {}", false),
            ("@Testable func a() {}", false),
            ("let a = \"@Test func\"", false),
        ])
    func names(text: String, isFound: Bool) {
        let findings = TextRules.findings(in: SourceText(path: "Tests/Base/ATests/A.swift", "é(\"é\")\n" + text))
        #expect(findings.map(\.line) == (isFound ? [2] : []))
    }

    @Test(
        "a test does not sleep",
        arguments: [
            ("try await Task.sleep(for: .seconds(1))", true), ("usleep(10)", true), ("_ = sleep(1)", true),
            ("Thread.sleep(forTimeInterval: 1)", true), ("try await ContinuousClock().sleep(for: .seconds(1))", true),
            ("try await clock.sleep(for: .seconds(1))", false), ("func sleep(until: Instant) {}", false),
            ("// sleep(1)", false), ("asleep(1)", false),
        ])
    func sleeping(text: String, isFound: Bool) {
        let findings = TextRules.findings(in: SourceText(path: "Tests/Base/ATests/A.swift", text))
        #expect(findings.isEmpty != isFound, "\(findings)")
    }
}
