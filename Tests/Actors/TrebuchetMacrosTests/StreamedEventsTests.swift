import Testing

@Suite("@StreamedEvents")
struct StreamedEventsTests {
    @Test("@StreamedEvents declares a sender and an observation")
    func expansion() {
        let expansion = Expansion(
            "@Trebuchet public distributed actor A { @StreamedEvents(buffer: 8) public var moves: [Move] }")
        #expect(expansion.findings.isEmpty)
        #expect(expansion.contains("let $moves: TrebuchetActors.EventSender<[Move]> = .init(buffer: 8)"))
        #expect(!expansion.text.contains("public let $moves"))
        #expect(
            expansion.contains("public nonisolated var observeMoves: TrebuchetActors.EventObservation<A, [Move]> {"))
        #expect(expansion.contains(#".init(self, "observeMoves", buffer: 8)"#))
        #expect(expansion.contains(#".events("observeMoves") { actor in"#))
        #expect(expansion.contains("case observeMoves"))
        #expect(
            expansion.text.contains("events have no stored value: send them with '$moves.send(_:)' and observe them"))
    }

    @Test("persisted events are stored under the property's name, up to the given number")
    func persisted() {
        let expansion = Expansion(
            "@Trebuchet distributed actor A { @StreamedEvents(persisted: true, keeping: 50) var moves: Move }")
        #expect(expansion.findings.isEmpty)
        #expect(
            expansion.contains(
                "let $moves: TrebuchetActors.EventSender<Move> = .init(persisted: true, keeping: 50)"))
        #expect(expansion.contains(#".init(self, "observeMoves", persisted: true, keeping: 50)"#))
        #expect(expansion.contains(#".persistedEvents("observeMoves", property: "moves") { actor in"#))
        let off = Expansion("@Trebuchet distributed actor A { @StreamedEvents(persisted: false) var moves: Move }")
        #expect(off.contains("let $moves: TrebuchetActors.EventSender<Move> = .init()"))
        #expect(off.contains(#".events("observeMoves") { actor in"#))
    }

    @Test("persisted events of an actor on the pool are rejected")
    func executor() throws {
        let expansion = Expansion(
            "@Trebuchet(executor: .concurrent) distributed actor A { @StreamedEvents(persisted: true) var a: Int }")
        let finding = try #require(expansion.findings.first { $0.message.contains("cannot be persisted") })
        #expect(finding.token == "true")
    }

    @Test("the sender of a private property is private")
    func access() {
        let expansion = Expansion("@Trebuchet distributed actor A { @StreamedEvents private var moves: Move }")
        #expect(expansion.contains("private let $moves: TrebuchetActors.EventSender<Move> = .init()"))
    }

    @Test(
        "an invalid property is diagnosed",
        arguments: [
            ("@StreamedEvents var a: Int = 1", "cannot have an initial value: events are sent individually", "="),
            ("@StreamedEvents var a = 1", "cannot have an initial value: events are sent individually", "="),
            ("@StreamedEvents let a: Int", "needs a 'var'", "let"),
            ("@StreamedEvents var a: () -> Void", "is a function", "("),
            ("@StreamedEvents(keeping: 5) var a: Int", "write 'persisted: true' before it", "5"),
            ("@StreamedEvents(persisted: b) var a: Int", "'@StreamedEvents' requires 'persisted'", "b"),
            ("@StreamedEvents @StreamedState var a: Int", "cannot be combined with '@StreamedState'", "@"),
        ])
    func diagnostics(line: String, message: String, token: String) throws {
        let expansion = Expansion("@Trebuchet distributed actor A {\n    \(line)\n}")
        let finding = try #require(expansion.findings.first { $0.message.contains(message) })
        #expect(finding.line == 2)
        #expect(finding.token == token)
    }

    @Test("@StreamedEvents is rejected outside an actor marked @Trebuchet")
    func place() throws {
        let expansion = Expansion("distributed actor A { @StreamedEvents var a: Int }")
        let finding = try #require(expansion.findings.first)
        #expect(finding.message == "'@StreamedEvents' works only inside a distributed actor marked '@Trebuchet'")
    }
}
