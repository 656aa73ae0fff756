import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import Testing

@Suite("Diagnostics of @Trebuchet, with token and fix-it")
struct DiagnosticsTests {
    /// A line inside an actor, or a whole file; its diagnostic; and the source after the fix-it.
    struct Case: CustomTestStringConvertible, Sendable {
        let source: String
        let message: String
        let token: String
        var fixed: String?

        var testDescription: String { source }
    }

    @Test("a property that cannot be streamed is diagnosed", arguments: Self.properties)
    func property(_ example: Case) throws {
        func file(_ line: String) -> String { "@Trebuchet distributed actor A {\n    \(line)\n}" }
        let expansion = Expansion(file(example.source))
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message == example.message)
        #expect(finding.token == example.token)
        #expect(finding.line == 2)
        #expect(finding.fixes.map(\.source) == (example.fixed.map { [file($0)] } ?? []))
    }

    @Test(
        "a lifecycle method that clients could call, or in #if, is diagnosed",
        arguments: [
            ("activate()", "activate()", "the actor is activated"),
            ("deactivate()", "deactivate()", "the actor is deactivated"),
            ("alarm(_ alarm: Alarm)", "alarm(_:)", "an alarm is due"),
        ])
    func lifecycle(declaration: String, name: String, event: String) throws {
        let expansion = Expansion(
            "@Trebuchet distributed actor A {\n    distributed func \(declaration) {}\n    func other() {}\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message
                == "a distributed '\(name)' can be called by clients; remove 'distributed' to run it when \(event)")
        #expect(name.hasPrefix(finding.token))
        #expect(Expansion("@Trebuchet distributed actor A {\n    func \(declaration) {}\n}").findings.isEmpty)
        let conditional = Expansion(
            "@Trebuchet distributed actor A {\n    #if DEBUG\n    func \(declaration) {}\n    #endif\n}")
        #expect(
            conditional.findings.map(\.message)
                == ["'\(name)' cannot be declared in '#if'; put the condition into its body"])
    }

    @Test("properties without a value, of an actor without an initializer, are diagnosed")
    func uninitialized() throws {
        func actor(_ lines: String...) -> Expansion {
            Expansion("@Trebuchet distributed actor Room {\n\(lines.joined(separator: "\n"))\n}")
        }
        let finding = try #require(actor("let name: String").findings.first)
        #expect(
            finding.message
                == "'name' has no value, and 'Room' has no initializer: give it a value, or add "
                + "'init(name: String, actorSystem: TrebuchetActorSystem)'")
        #expect(finding.token == "name")
        let both = actor("let name: String", "var seats: [Int] { didSet {} }").findings
        #expect(both.count == 1)
        #expect(
            both.first?.message
                == "'name', 'seats' have no value, and 'Room' has no initializer: give each of them a value, or add "
                + "'init(name: String, seats: [Int], actorSystem: TrebuchetActorSystem)'")
        #expect(actor("let name: String", "init(actorSystem: TrebuchetActorSystem) {}").findings.isEmpty)
        for line in [
            "let name = \"\"", "var name: String?", "var name: String { \"\" }", "static let name: String = \"\"",
            "lazy var name: String = \"\"", "@Wrapped var name: String",
        ] {
            #expect(actor(line).findings.isEmpty, "\(line)")
        }
    }

    static let properties: [Case] = [
        Case(
            source: "@StreamedState let a: Int = 1",
            message: "'@StreamedState' needs a 'var': a constant has no changes to stream", token: "let",
            fixed: "@StreamedState var a: Int = 1"),
        Case(
            source: "@StreamedState public static var a: Int = 1",
            message: "'@StreamedState' cannot be 'static': a streamed property belongs to one actor, not to its type",
            token: "static", fixed: "@StreamedState public var a: Int = 1"),
        Case(
            source: "@StreamedState lazy var a: Int = 1",
            message: "'@StreamedState' cannot be 'lazy': subscribers receive the value immediately, "
                + "so it must be initialized",
            token: "lazy", fixed: "@StreamedState var a: Int = 1"),
        Case(
            source: "@StreamedState weak var a: A?",
            message: "'@StreamedState' cannot be 'weak': a streamed property owns its value",
            token: "weak", fixed: "@StreamedState var a: A?"),
        Case(
            source: "@StreamedState var a: Int { 1 }",
            message:
                "'@StreamedState' requires a stored property: stream the state that this property is computed from",
            token: "{", fixed: "var a: Int { 1 }"),
        Case(
            source: "@StreamedState var a: Int = 1 { didSet { log() } }",
            message: "'@StreamedState' cannot have 'didSet': move its code to the method that changes the property",
            token: "didSet"),
        Case(
            source: "@Clamped(0...1) @StreamedState var a: Int = 1",
            message: "'@StreamedState' cannot be combined with '@Clamped' on one property",
            token: "@", fixed: "@StreamedState var a: Int = 1"),
        Case(
            source: "@StreamedState var (a, b) = (1, 2)",
            message: "'@StreamedState' requires a property with one name", token: "("),
        Case(
            source: "@StreamedState var a: [() -> Void] = []",
            message: "a stream needs a type that is Codable and Sendable; '() -> Void' is a function",
            token: "("),
        Case(
            source: "@StreamedState var a: (Int, Int) = (1, 2)",
            message:
                "a stream needs a type that is Codable and Sendable; '(Int, Int)' is a tuple; use a struct",
            token: "("),
        Case(
            source: "@StreamedState var a: [String: any Codable] = [:]",
            message: "a stream needs a type that is Codable and Sendable; 'any Codable' is an existential; "
                + "use an enum with a case for each type, or a concrete type",
            token: "any"),
        Case(
            source: "@StreamedState var a: Set<AnyObject>? = nil",
            message: "a stream needs a type that is Codable and Sendable; 'AnyObject' is an existential; "
                + "use a concrete type",
            token: "AnyObject"),
    ]

    @Test("several properties in one declaration are diagnosed")
    func severalBindings() throws {
        // Called directly: the test's expansion itself rejects such a declaration, the compiler's calls the macro.
        let declaration: DeclSyntax = "    @StreamedState var a: Int = 1, b, c: String"
        let variable = try #require(declaration.as(VariableDeclSyntax.self))
        let error = #expect(throws: DiagnosticsError.self) { try StreamedProperty(variable, .state) }
        let problem = try #require(error?.diagnostics.first)
        #expect(error?.diagnostics.count == 1)
        #expect(problem.message == "'@StreamedState' requires a separate declaration for each property")
        #expect(problem.node.description == "var ")
        guard case .replace(_, let fixed) = problem.fixIts.first?.changes.first else {
            Issue.record("no fix-it")
            return
        }
        #expect(
            fixed.description
                == "    @StreamedState var a: Int = 1\n    @StreamedState var b: String\n    @StreamedState var c: String"
        )
    }

    @Test(
        "a property outside a @Trebuchet actor is diagnosed",
        arguments: ["distributed actor", "actor", "struct", "extension"])
    func place(kind: String) throws {
        let expansion = Expansion("\(kind) A {\n    @StreamedState var a = 1\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message == "'@StreamedState' works only inside a distributed actor marked '@Trebuchet'")
        #expect(finding.token == "@")
        #expect(finding.fixes.map(\.source) == ["\(kind) A {\n    var a = 1\n}"])
    }

    @Test(
        "@Idempotent on anything but a distributed method is diagnosed",
        arguments: ["func f() {}", "distributed var f: Int { 1 }", "var f = 1", "init() {}", "struct F {}"])
    func idempotent(member: String) throws {
        let expansion = Expansion("@Trebuchet distributed actor A {\n    @Idempotent \(member)\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message
                == "'@Idempotent' can only be attached to a 'distributed func': only distributed methods are called over a network"
        )
        #expect(finding.token == "@")
        #expect(finding.line == 2)
        #expect(!expansion.contains("idempotent: true"))
    }

    @Test("@Redacted on anything but a distributed method in the body of a @Trebuchet actor is diagnosed")
    func redacted() throws {
        for (source, message) in [
            (
                "@Trebuchet distributed actor A {\n    @Redacted func f() {}\n}",
                "'@Redacted' can only be attached to a 'distributed func': the arguments of other methods are never shown"
            ),
            (
                "extension A {\n    @Redacted distributed func f()\n}",
                "'@Redacted' works only in the body of a distributed actor marked '@Trebuchet'"
            ),
        ] {
            #expect(Expansion(source).findings.map(\.message) == [message])
        }
        let marked = Expansion(
            "@Trebuchet distributed actor A {\n    @Redacted distributed func f(_ code: String) {}\n}")
        #expect(marked.findings.isEmpty && marked.lines.contains { $0.contains("redacted: true") })
    }

    @Test(
        "an @Idempotent method outside the body of a @Trebuchet actor is diagnosed",
        arguments: ["distributed actor A", "extension A", "@Resolvable protocol A"])
    func idempotentPlace(kind: String) throws {
        let expansion = Expansion("\(kind) {\n    @Idempotent distributed func f()\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message == "'@Idempotent' works only in the body of a distributed actor marked '@Trebuchet'")
        #expect(finding.token == "@")
    }

    @Test("an actor that is not distributed is diagnosed, whatever precedes it", arguments: ["", "public ", "final "])
    func plainActor(modifier: String) throws {
        let expansion = Expansion("@Trebuchet\n\(modifier)actor A {}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message == "'@Trebuchet' can only be attached to a distributed actor")
        #expect(finding.token == "actor")
        #expect(finding.fixes.map(\.source) == ["@Trebuchet\n\(modifier)distributed actor A {}"])
        #expect(expansion.lines == ["\(modifier)actor A {}"])
    }

    @Test("a type that is not an actor is diagnosed", arguments: ["class", "struct", "enum"])
    func noActor(kind: String) throws {
        let expansion = Expansion("@Trebuchet \(kind) A {}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.token == kind)
        #expect(finding.fixes.isEmpty)
    }

    @Test("an executor that cannot be read at compile time is diagnosed")
    func executor() throws {
        let finding = try #require(Expansion("@Trebuchet(executor: mine) distributed actor A {}").findings.first)
        #expect(finding.token == "mine")
        #expect(
            finding.message.hasPrefix("'@Trebuchet' requires its executor as the literal '.reactor' or '.concurrent'"))
    }

    @Test("overloads that differ only in types are diagnosed; the first one is served")
    func overloads() throws {
        let expansion = Expansion(
            """
            @Trebuchet distributed actor A {
                distributed func f(_ a: Int) {}
                distributed func f(b: Int) {}
                distributed func f(_ a: String) {}
            }
            """)
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message == "two distributed methods are named 'f(_:)': "
                + "change the name or the argument labels of one of them")
        #expect(finding.token == "f")
        #expect(finding.line == 4)
        #expect(finding.notes == ["the other 'f(_:)' is here"])
        #expect(expansion.text.count(of: "\"f(_:)\"") == 1)
    }

    @Test(
        "a member with the name of an observation is diagnosed",
        arguments: [
            "distributed func observeState() {}", "func observeState(from: Int) {}", "func observeState() {}",
        ])
    func observationCollision(member: String) throws {
        let expansion = Expansion("@Trebuchet distributed actor A {\n@StreamedState var state = 1\n\(member)\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message
                == "'observeState' collides with the member that '@Trebuchet' generates for the changes of 'state'")
        #expect(finding.token == "observeState")
        #expect(
            finding.fixes.map(\.source) == ["@Trebuchet distributed actor A {\n@StreamedState var state = 1\n}"])
        #expect(!expansion.text.contains("StateObservation"))
    }

    @Test(
        "another member with a generated name is diagnosed",
        arguments: [
            ("var observeState: Int { 1 }", "observeState"), ("enum StreamingMethod {}", "StreamingMethod"),
            ("struct observeState {}", "observeState"), ("let _dispatch = 1", "_dispatch"),
        ])
    func memberCollision(member: String, name: String) throws {
        let expansion = Expansion("@Trebuchet distributed actor A {\n@StreamedState var state = 1\n\(member)\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.token == name)
        #expect(finding.fixes.isEmpty)
    }

    @Test("two streams with one name are diagnosed")
    func streamCollision() throws {
        let expansion = Expansion(
            "@Trebuchet distributed actor A {\n@StreamedState var state = 1\n@StreamedState var State = 2\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message == "'State' and 'state' have the same stream name 'observeState': rename one of them")
        #expect(finding.token == "State")
        #expect(finding.notes == ["'state' is here"])
        #expect(expansion.text.count(of: "case observeState") == 1)
    }

    @Test("a method that only resembles an observation is accepted")
    func innocentObserve() {
        let expansion = Expansion(
            """
            @Trebuchet distributed actor A {
                @StreamedState var state = 1
                distributed func observeWeather() -> Int { 1 }
                static func observeState() {}
            }
            """)
        #expect(expansion.findings.isEmpty)
        #expect(expansion.contains(".sync(\"observeWeather()\", arguments: 0) { actor, _, reply in"))
    }

    @Test(
        "generic requirements that cannot be checked at run time are diagnosed",
        arguments: [
            ("<T: Codable & Sendable>(_ a: T) where T.Element: P", "T.Element: P", "T"),
            ("<T: Sequence & Codable>(_ a: T) where T.Element == Int", "T.Element == Int", "T"),
            ("<each T: Codable>(_ a: Int)", "parameter pack", "each"),
            ("<T: ~Copyable>(_ a: Int)", "~Copyable", "~"),
        ])
    func generics(signature: String, part: String, token: String) throws {
        let expansion = Expansion("@Trebuchet distributed actor A {\ndistributed func f\(signature) {}\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message.contains(part))
        #expect(finding.message.hasPrefix("'f' cannot be called remotely with "))
        #expect(finding.token == token)
        #expect(finding.line == 2)
    }
}

extension String {
    /// The number of occurrences of `part`.
    fileprivate func count(of part: String) -> Int {
        ranges(of: part).count
    }
}
