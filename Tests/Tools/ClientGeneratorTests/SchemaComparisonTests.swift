import ClientGenerator
import Testing

/// The changes between two schemas that break old clients, new clients or stored data.
@Suite struct SchemaComparisonTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let old: String
        let new: String
        /// The lines of the report without "breaking for" of old clients and stored data, and "note for" of new clients.
        let lines: [String]

        init(_ name: String, _ old: String, _ new: String, _ lines: String...) {
            (testDescription, self.old, self.new, self.lines) = (name, old, new, lines)
        }
    }

    private static func app(_ members: String, _ types: String = "") -> String {
        "@Trebuchet distributed actor App {\n\(members)\n}\n\(types)\n"
    }

    /// An app that receives and returns a type.
    private static func echo(_ types: String, _ type: String = "T") -> String {
        app("distributed func echo(_ value: \(type)) -> \(type) { value }", types)
    }

    /// An app that stores a type.
    private static func stored(
        _ types: String, _ type: String = "T", _ attribute: String = "@StreamedState(persisted: true)"
    ) -> String {
        app("\(attribute) private var state: \(type) = make()", types)
    }

    private static let events = "@StreamedEvents(persisted: true)"

    static let methods: [Row] = [
        Row("equal sources", app("distributed func a() {}"), app("distributed func a() {}")),
        Row(
            "a removed method", app("distributed func a() {}\ndistributed func b(x: Int) {}"),
            app("distributed func a() {}"), "old-clients: App.b(x:): called by old clients, absent at new servers"),
        Row(
            "an added method", app(""), app("distributed func a() {}"),
            "new-clients: App.a(): called by new clients, absent at old servers"),
        Row(
            "a renamed label", app("distributed func a(x: Int) {}"), app("distributed func a(y: Int) {}"),
            "old-clients: App.a(x:): called by old clients, absent at new servers",
            "new-clients: App.a(y:): called by new clients, absent at old servers"),
        Row(
            "a renamed parameter", app("distributed func a(x one: Int) {}"), app("distributed func a(x two: Int) {}")),
        Row(
            "a removed and an added actor", app("distributed func a() {}"),
            "@Trebuchet distributed actor Other { distributed func a() {} }",
            "old-clients: App: used by old clients, absent at new servers",
            "new-clients: Other: used by new clients, absent at old servers"),
        Row(
            "a new result", app("distributed func a() {}"), app("distributed func a() -> Int { 1 }"),
            "new-clients: App.a(): 'Int' is the result for new clients, none of old servers"),
        Row(
            "a removed result", app("distributed func a() -> Int { 1 }"), app("distributed func a() {}"),
            "old-clients: App.a(): 'Int' is the result for old clients, none of new servers"),
        Row(
            "an optional result", app("distributed func a() -> Int { 1 }"), app("distributed func a() -> Int? { 1 }"),
            "old-clients: App.a(): may be null in values of new servers, required by old clients (result of App.a())"),
        Row(
            "an optional parameter", app("distributed func a(_ x: Int) {}"), app("distributed func a(_ x: Int?) {}"),
            "new-clients: App.a(_:): may be null in values of new clients, required by old servers (parameter 'x' of App.a(_:))"
        ),
        Row(
            "an idempotent method", app("@Idempotent distributed func a() {}"), app("distributed func a() {}"),
            "old-clients: App.a(): repeated by old clients, not idempotent at new servers"),
        Row(
            "another error", app("distributed func a() throws(A) {}", "enum A: String, Error, Codable { case a }"),
            app("distributed func a() throws(B) {}", "enum B: String, Error, Codable { case a }"),
            "old-clients: App.a(): 'A' is the error for old clients, 'B' of new servers",
            "new-clients: App.a(): 'B' is the error for new clients, 'A' of old servers"),
        Row(
            "a new case of an error",
            app("distributed func a() throws(A) {}", "enum A: String, Error, Codable { case a }"),
            app("distributed func a() throws(A) {}", "enum A: String, Error, Codable { case a, b }"),
            "old-clients: A.b: a case in values of new servers that old clients do not know (error of App.a())"),
        Row(
            "a state that becomes events", app("@StreamedState var a: Int = 1"), app("@StreamedEvents var a: Int"),
            "old-clients: App.a: observed by old clients, absent at new servers",
            "new-clients: App.a: observed by new clients, absent at old servers"),
    ]

    static let types: [Row] = [
        Row(
            "a new member", echo("struct T: Codable { var a: Int }"),
            echo("struct T: Codable { var a: Int; var b: Int }"),
            "old-clients: T.b: absent in values of old clients, required by new servers (parameter 'value' of App.echo(_:))",
            "new-clients: T.b: absent in values of old servers, required by new clients (result of App.echo(_:))"),
        Row(
            "a new optional member", echo("struct T: Codable { var a: Int }"),
            echo("struct T: Codable { var a: Int; var b: Int? }")),
        Row(
            "a removed member", echo("struct T: Codable { var a: Int; var b: Int }"),
            echo("struct T: Codable { var a: Int }"),
            "old-clients: T.b: absent in values of new servers, required by old clients (result of App.echo(_:))",
            "new-clients: T.b: absent in values of new clients, required by old servers (parameter 'value' of App.echo(_:))"
        ),
        Row(
            "a member that becomes required", echo("struct T: Codable { var a: Int? }"),
            echo("struct T: Codable { var a: Int }"),
            "old-clients: T.a: may be absent in values of old clients, required by new servers (parameter 'value' of App.echo(_:))",
            "new-clients: T.a: may be absent in values of old servers, required by new clients (result of App.echo(_:))"
        ),
        Row(
            "a member that is always written", echo("struct T: Codable { var a: Int? }"),
            echo("struct T: Codable { @DeltaValue var a: Int? }"),
            "old-clients: T.a: may be absent in values of old clients, required by new servers (parameter 'value' of App.echo(_:))",
            "new-clients: T.a: may be absent in values of old servers, required by new clients (result of App.echo(_:))"
        ),
        Row(
            "a new raw value", echo("enum T: String, Codable { case a }"),
            echo("enum T: String, Codable { case a, b }"),
            "old-clients: T.b: a case in values of new servers that old clients do not know (result of App.echo(_:))",
            "new-clients: T.b: a case in values of new clients that old servers do not know (parameter 'value' of App.echo(_:))"
        ),
        Row(
            "a renamed case of the same raw value", echo("enum T: String, Codable { case a }"),
            echo("enum T: String, Codable { case b = \"a\" }")),
        Row(
            "a new case for tolerant clients", echo("enum T: String, Codable { case a }", "Tolerant<T>"),
            echo("enum T: String, Codable { case a, b }", "Tolerant<T>")),
        Row(
            "tolerance that ends", echo("enum T: String, Codable { case a }", "[Tolerant<T>]"),
            echo("enum T: String, Codable { case a }", "[T]")),
        Row(
            "members of a case", echo("enum T: Codable { case a(Int, name: String) }"),
            echo("enum T: Codable { case a(Bool), b }"),
            "old-clients: T.a._0: 'Int' in values of old clients, 'Bool' for new servers (parameter 'value' of App.echo(_:))",
            "old-clients: T.a._0: 'Bool' in values of new servers, 'Int' for old clients (result of App.echo(_:))",
            "old-clients: T.a.name: absent in values of new servers, required by old clients (result of App.echo(_:))",
            "old-clients: T.b: a case in values of new servers that old clients do not know (result of App.echo(_:))",
            "new-clients: T.a._0: 'Bool' in values of new clients, 'Int' for old servers (parameter 'value' of App.echo(_:))",
            "new-clients: T.a.name: absent in values of new clients, required by old servers (parameter 'value' of App.echo(_:))",
            "new-clients: T.b: a case in values of new clients that old servers do not know (parameter 'value' of App.echo(_:))",
            "new-clients: T.a._0: 'Int' in values of old servers, 'Bool' for new clients (result of App.echo(_:))"),
        Row(
            "a wider integer", app("@StreamedState var a: Int32 = 1"), app("@StreamedState var a: Int = 1"),
            "old-clients: App.a: 'Int' in values of new servers, 'Int32' for old clients (state App.a)"),
        Row(
            "a double that becomes an integer", app("@StreamedEvents var a: Double"),
            app("@StreamedEvents var a: UInt8"),
            "new-clients: App.a: 'Double' in values of old servers, 'UInt8' for new clients (events App.a)"),
        Row(
            "an unsigned integer", app("@StreamedEvents var a: Int8"), app("@StreamedEvents var a: UInt8"),
            "old-clients: App.a: 'UInt8' in values of new servers, 'Int8' for old clients (events App.a)",
            "new-clients: App.a: 'Int8' in values of old servers, 'UInt8' for new clients (events App.a)"),
        Row("a set that becomes an array", echo("", "Set<Int>"), echo("", "[Int]")),
        Row(
            "a raw value of a struct", echo("struct T: RawRepresentable, Codable { var rawValue: String }"),
            echo("", "String")),
        Row(
            "text that becomes an enum", app("@StreamedEvents var a: String"),
            app("@StreamedEvents var a: T", "enum T: String, Codable { case a }"),
            "new-clients: App.a: 'String' in values of old servers, 'T' for new clients (events App.a)"),
        Row(
            "any JSON", app("@StreamedEvents var a: JSONValue"), app("@StreamedEvents var a: [Int]"),
            "new-clients: App.a: 'unknown' in values of old servers, '[Int]' for new clients (events App.a)"),
        Row(
            "another name of a type", echo("struct T: Codable { var a: Int }"),
            echo("struct U: Codable { var a: Int }", "U")),
        Row(
            "a generic type", echo("struct P<I: Codable>: Codable { var items: [I] }", "P<Int>"),
            echo("struct P<I: Codable>: Codable { var items: [I] }", "P<Bool>"),
            "old-clients: P.items: 'Int' in values of old clients, 'Bool' for new servers (parameter 'value' of App.echo(_:))",
            "old-clients: P.items: 'Bool' in values of new servers, 'Int' for old clients (result of App.echo(_:))",
            "new-clients: P.items: 'Bool' in values of new clients, 'Int' for old servers (parameter 'value' of App.echo(_:))",
            "new-clients: P.items: 'Int' in values of old servers, 'Bool' for new clients (result of App.echo(_:))"),
        Row(
            "a recursive type", echo("struct T: Codable { var children: [T] }"),
            echo("struct T: Codable { var children: [T]; var name: String? }")),
        Row(
            "a dictionary", app("@StreamedEvents var a: [String: T]", "struct T: Codable { var a: Int }"),
            app("@StreamedEvents var a: [String: T]", "struct T: Codable { var b: Int? }"),
            "old-clients: T.a: absent in values of new servers, required by old clients (events App.a)"),
    ]

    static let stores: [Row] = [
        Row(
            "a new member of a stored state",
            stored("struct T: Codable { var a = U() }\nstruct U: Codable { var a = 1 }"),
            stored("struct T: Codable { var a = U(); var b = 1 }\nstruct U: Codable { var a = 1; var b = 2 }")),
        Row(
            "a new member of an element", stored("struct T: Codable { var a = 1 }", "[T]"),
            stored("struct T: Codable { var a = 1; var b = 2; var c: Int? }", "[T]"),
            "stored-data: T.b: absent in stored values, required by new servers (stored state App.state)"),
        Row(
            "a new member below an optional",
            stored("struct T: Codable { var a: U? }\nstruct U: Codable { var a = 1 }"),
            stored("struct T: Codable { var a: U? }\nstruct U: Codable { var a = 1; var b = 2 }"),
            "stored-data: U.b: absent in stored values, required by new servers (stored state App.state)"),
        Row(
            "a removed member of a stored state", stored("struct T: Codable { var a = 1; var b = 2 }"),
            stored("struct T: Codable { var a = 1 }"),
            "stored-data: T.b: in stored values, dropped by the next write of new servers (stored state App.state)"),
        Row(
            "a raised version", stored("struct T: Codable { var a = 1; var b = 2 }"),
            stored(
                "struct T: Codable { var c: [Int] = [1] }", "T",
                "@StreamedState(persisted: true, version: 2, migrate: m)")),
        Row(
            "a lowered version", stored("", "Int", "@StreamedState(persisted: true, version: 3, migrate: m)"),
            stored("", "Int", "@StreamedState(persisted: true, version: 2, migrate: m)"),
            "stored-data: App.state: version 3 in stored values, refused by new servers with version 2"),
        Row(
            "a removed state", stored("", "Int"), app("distributed func a() {}"),
            "new-clients: App.a(): called by new clients, absent at old servers",
            "stored-data: App.state: stored by old servers, not read by new servers"),
        Row("a state that is stored from now on", stored("", "Int", "@StreamedState"), stored("", "Int")),
        Row(
            "a removed case of a stored state", stored("enum T: String, Codable { case a, b }"),
            stored("enum T: String, Codable { case a }"),
            "stored-data: T.b: a case in stored values that new servers do not know (stored state App.state)"),
        Row(
            "members of stored events",
            app("\(events) private var e: T", "struct T: Codable { var a: Int; var b: Int }"),
            app("\(events) private var e: T", "struct T: Codable { var a: Int; var c: Int; var d: Int? }"),
            "stored-data: T.c: absent in stored values, required by new servers (stored events App.e)"),
    ]

    private static func comparison(_ old: String, _ new: String) throws -> SchemaComparison {
        func schema(_ source: String) throws -> String {
            var options = Generation.Options()
            options.includesPrivateStreams = true
            let generation = Generation([(path: "Sources/App/App.swift", text: source)], options: options)
            #expect(generation.messages == [])
            return generation.schema
        }
        return try SchemaComparison(old: schema(old), new: schema(new))
    }

    @Test("the breaking changes of two sources are found", arguments: methods + types + stores)
    func changes(row: Row) throws {
        let comparison = try Self.comparison(row.old, row.new)
        let lines = comparison.text(.init()).split(separator: "\n").map(String.init)
        #expect(lines.dropLast() == row.lines.map { ($0.hasPrefix("new") ? "note for " : "breaking for ") + $0 }[...])
        let count = row.lines.count { !$0.hasPrefix("new") }
        #expect(comparison.failures(.init()) == count)
        let summary =
            count == 0 ? "no breaking changes" : count == 1 ? "1 breaking change" : "\(count) breaking changes"
        #expect(lines.last == summary)
    }

    @Test("audiences and accepted changes are selected")
    func selection() throws {
        let comparison = try Self.comparison(
            Self.app("distributed func a() {}\n@StreamedState(persisted: true) var s: Int = 1"),
            Self.app("distributed func b() {}"))
        var selection = SchemaComparison.Selection()
        #expect(comparison.failures(selection) == 3)
        selection.audiences = Set(SchemaComparison.Audience.allCases)
        #expect(comparison.failures(selection) == 4)
        selection.accepted = ["App.a()", "App.s"]
        #expect(comparison.failures(selection) == 1)
        selection.audiences = []
        #expect(comparison.failures(selection) == 0)
        #expect(comparison.text(selection).hasPrefix("note for old-clients: App.a(): called by old clients"))
        selection.audiences = [.storedData]
        selection.accepted = []
        #expect(
            comparison.json(selection).hasSuffix(
                """
                    {
                      "for": "stored-data",
                      "subject": "App.s",
                      "change": "stored by old servers, not read by new servers",
                      "breaking": true
                    }
                  ]
                }

                """), "\(comparison.json(selection))")
    }

    @Test(
        "texts that are no schemas are refused with a reason",
        arguments: [
            ("{", "it is not a schema"),
            (#"{"format":"other","version":1,"actors":[],"types":[]}"#, "its 'format' is 'other'"),
            (#"{"format":"trebuchet-schema","version":2,"actors":[],"types":[]}"#, "its 'version' is 2"),
            (
                #"{"format":"trebuchet-schema","version":1,"actors":[],"types":[{"name":"A","swiftName":"A","kind":"new"}]}"#,
                "it is not a schema"
            ),
        ])
    func refused(text: String, reason: String) throws {
        let schema = generated(Self.app("")).schema
        let error = try #require(throws: SchemaError.self) { try SchemaComparison(old: text, new: schema) }
        #expect(error.description.hasPrefix(reason))
    }

    @Test("the schema has the stored forms, private ones too, and deprecations")
    func schema() {
        var options = Generation.Options()
        options.includesPrivateStreams = true
        let source = Self.app(
            """
            @StreamedState(persisted: true, version: 3, migrate: m) var a: Int = 1
            @StreamedState var b: Int = 1
            @StreamedState(persisted: true) private var c: Hidden = Hidden()
            @StreamedEvents(persisted: true, keeping: 5) private var d: Int
            @StreamedState private var e: Int = 1
            @available(*, deprecated, message: "use 'b'") distributed func f() {}
            """, "struct Hidden: Codable {}")
        let generation = Generation([(path: "Sources/App/App.swift", text: source)], options: options)
        #expect(generation.messages == [])
        for part in [
            #"{ "name": "a", "target": "observeA", "type": "Int", "storedVersion": 3 }"#,
            #"{ "name": "b", "target": "observeB", "type": "Int" }"#,
            #""privateStates": ["#, #""privateEvents": ["#,
            #"{ "name": "c", "target": "observeC", "type": { "named": "Hidden" }, "storedVersion": 1 }"#,
            #"{ "name": "d", "target": "observeD", "type": "Int", "storedVersion": 1 }"#,
            #""deprecated": "use 'b'""#,
        ] {
            #expect(generation.schema.contains(part), "\(part) is missing in\n\(generation.schema)")
        }
        #expect(!generation.schema.contains("observeE"))
        // A client has only what it can use.
        #expect(!generated(source).typeScript.contains("Hidden"))
    }
}
