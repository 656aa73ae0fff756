import Testing

@Suite("@StreamedState")
struct StreamedStateTests {
    @Test(
        "the type follows from the initial value",
        arguments: [
            ("1", "Int"), ("-1", "Int"), ("1.5", "Double"), ("-1.5", "Double"), ("\"a\"", "String"), ("true", "Bool"),
            ("State()", "State"), ("State.init(a: 1)", "State"), ("Foo.Bar(1)", "Foo.Bar"), ("(State())", "State"),
            ("[String]()", "[String]"), ("[String: Foo.Bar]()", "[String: Foo.Bar]"), ("Set<Int>()", "Set<Int>"),
            ("[State?]()", "[State?]"), ("[] as [Int]", "[Int]"), ("make() as Foo", "Foo"), ("1 as UInt8", "UInt8"),
        ])
    func inferredType(value: String, type: String) {
        let expansion = Expansion("@Trebuchet distributed actor A { @StreamedState var a = \(value) }")
        #expect(expansion.contains("private let _a_cell: TrebuchetActors._StateCell<\(type)> = .init()"))
        #expect(expansion.contains("nonisolated var observeA: TrebuchetActors.StateObservation<A, \(type)> {"))
        #expect(expansion.findings.isEmpty)
    }

    @Test(
        "a type annotation is required when the value does not determine the type",
        arguments: [
            ("make()", "<#Type#>"), ("nil", "<#Type#>"), ("[1, 2]", "<#Type#>"), ("Mode.idle", "Mode"),
            ("Foo.make()", "Foo"), ("x as? Int", "<#Type#>"), ("1 + 2", "<#Type#>"),
        ])
    func unknownType(value: String, proposed: String) throws {
        let expansion = Expansion("@Trebuchet distributed actor A { @StreamedState var a = \(value) }")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message == "'@StreamedState' cannot infer the type of 'a': add a type annotation")
        #expect(finding.token == "a")
        #expect(
            finding.fixes.map(\.source) == [
                "@Trebuchet distributed actor A { @StreamedState var a: \(proposed) = \(value) }"
            ])
        #expect(!expansion.text.contains("observeA"))
    }

    @Test("an initial value is optional: the initializer may provide it")
    func noInitialValue() {
        let expansion = Expansion(
            "@Trebuchet distributed actor A {\n@StreamedState var a: Int?\n@StreamedState var b: Int\n}")
        #expect(expansion.contains("private let _a_cell: TrebuchetActors._StateCell<Int?> = .init()"))
        #expect(expansion.contains("private let _b_cell: TrebuchetActors._StateCell<Int> = .init()"))
    }

    @Test("generated names drop the backticks of a property name")
    func backticks() {
        let expansion = Expansion("@Trebuchet distributed actor A { @StreamedState var `default` = 1 }")
        #expect(expansion.contains("private let _default_cell: TrebuchetActors._StateCell<Int> = .init()"))
        #expect(expansion.contains("case observeDefault"))
    }

    @Test("a persisted state has an entry that can set it")
    func persisted() {
        let expansion = Expansion(
            "@Trebuchet distributed actor A { @StreamedState(persisted: true) var `default` = 1 }")
        #expect(expansion.findings.isEmpty)
        let entry = """
            .persisted("observeDefault", property: "default") { actor in
                actor._default_cell
            } value: { actor in
                actor.`default`
            } change: { actor, body in
                body(&actor.`default`)
            }
            """
        #expect(expansion.contains(entry))
        let plain = Expansion("@Trebuchet distributed actor A { @StreamedState(persisted: false) var a = 1 }")
        #expect(plain.contains(".state(\"observeA\") { actor in"))
        #expect(plain.findings.isEmpty)
    }

    @Test("persisted is a literal, since the macro reads it")
    func persistedLiteral() {
        let expansion = Expansion("@Trebuchet distributed actor A { @StreamedState(persisted: yes) var a = 1 }")
        #expect(expansion.findings.count == 1)
        #expect(expansion.findings.first?.message.contains("'true' or 'false'") == true)
        #expect(expansion.findings.first?.token == "yes")
    }

    @Test("a concurrent actor has no persisted states")
    func persistedConcurrent() {
        let expansion = Expansion(
            "@Trebuchet(executor: .concurrent) distributed actor A { @StreamedState(persisted: true) var a = 1 }")
        #expect(expansion.findings.count == 1)
        #expect(expansion.findings.first?.message.contains("'executor: .concurrent'") == true)
    }

    @Test("a persisted state may deliver every version")
    func persistedDelivery() {
        let expansion = Expansion(
            "@Trebuchet distributed actor A { @StreamedState(delivery: .every(), persisted: true) var a = 1 }")
        #expect(expansion.findings.isEmpty)
        #expect(
            expansion.contains("private let _a_cell: TrebuchetActors._StateCell<Int> = .init(delivery: .every())"))
        #expect(expansion.text.contains(#".persisted("observeA", property: "a")"#))
    }

    @Test("the entry of a persisted state has its version and its migration, as they are written")
    func version() {
        let migrating = Expansion(
            """
            @Trebuchet distributed actor A {
                @StreamedState(persisted: true, version: 1_2, migrate: { json, from in
                    json["a"] = 1
                }) var a = 1
            }
            """)
        #expect(migrating.findings.isEmpty)
        let entry = """
            .persisted("observeA", property: "a", version: .init(12, migrate: { json, from in
            json["a"] = 1
            })) { actor in
            """
        #expect(migrating.contains(entry), "\(migrating.text)")
        let named = Expansion(
            "@Trebuchet distributed actor A { @StreamedState(persisted: true, version: 2, migrate: grow) var a = 1 }")
        #expect(named.contains(#".persisted("observeA", property: "a", version: .init(2, migrate: grow)) { actor in"#))
        for version in [1, 2] {
            let alone = Expansion(
                "@Trebuchet distributed actor A { @StreamedState(persisted: true, version: \(version)) var a = 1 }")
            #expect(alone.findings.isEmpty)
            #expect(alone.contains(#".persisted("observeA", property: "a", version: .init(\#(version))) { actor in"#))
        }
    }

    @Test(
        "an invalid version or migration is diagnosed with advice",
        arguments: [
            ("persisted: true, migrate: grow", "grow", "write 'version: 2' before it"),
            ("migrate: grow", "grow", "write 'persisted: true, version: 2' before it"),
            ("version: 2", "2", "write 'persisted: true' before it"),
            ("persisted: false, version: 2, migrate: grow", "2", "write 'persisted: true' before it"),
            ("persisted: true, version: newest", "newest", "as an integer literal from 1, such as 'version: 2'"),
            ("persisted: true, version: 0", "0", "as an integer literal from 1, such as 'version: 2'"),
            ("persisted: true, version: -1", "-", "as an integer literal from 1, such as 'version: 2'"),
            ("persisted: true, version: 99999999999999999999", "99999999999999999999", "as an integer literal from 1"),
            ("persisted: true, version: 1, migrate: grow", "grow", "write 'version: 2'"),
        ])
    func versionProblems(arguments: String, token: String, advice: String) {
        let expansion = Expansion("@Trebuchet distributed actor A { @StreamedState(\(arguments)) var a = 1 }")
        #expect(expansion.findings.map(\.token) == [token])
        #expect(expansion.findings.first?.message.contains(advice) == true, "\(expansion.findings)")
    }

    @Test("the delivery is passed to the cell and to the observations")
    func delivery() {
        let expansion = Expansion(
            "@Trebuchet distributed actor A { @StreamedState(delivery: .every(buffer: 8)) var a = 1 }")
        #expect(
            expansion.contains(
                "private let _a_cell: TrebuchetActors._StateCell<Int> = .init(delivery: .every(buffer: 8))"))
        #expect(expansion.contains(#".init(self, "observeA", delivery: .every(buffer: 8))"#))
        #expect(expansion.findings.isEmpty)
    }
}
