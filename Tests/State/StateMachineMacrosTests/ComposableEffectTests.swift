import Testing

@Suite("@ComposableEffect")
struct ComposableEffectTests {
    @Test(
        "@ComposableEffect generates the cases, the factories and the decomposition of an effect",
        arguments: ["", "public ", "package "])
    func members(access: String) {
        let expansion = Expansion("@ComposableEffect \(access)enum IOEffect {\n    case fetch(Int)\n}")
        #expect(expansion.findings.isEmpty)
        #expect(expansion.contains("case merge([Self])"))
        #expect(expansion.contains("case concat([Self])"))
        #expect(expansion.contains("\(access)static func merge(_ effects: Self...) -> Self {"))
        #expect(expansion.contains("\(access)static func concat(_ effects: Self...) -> Self {"))
        #expect(
            expansion.contains("\(access)func asComposableEffect() -> StateMachines.ComposableEffect<Self> {"))
        #expect(expansion.contains("extension IOEffect: StateMachines.ComposableEffectConvertible {"))
    }

    @Test("@ComposableEffect applies to enums only")
    func wrongKind() throws {
        let expansion = Expansion("@ComposableEffect struct A {}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message == "'@ComposableEffect' can only be attached to an enum")
        #expect(finding.fixes.map(\.title) == ["remove '@ComposableEffect'"])
        #expect(finding.fixes.map(\.source) == ["struct A {}"])
    }

    @Test("an enum without cases is diagnosed")
    func noCases() throws {
        let expansion = Expansion("@ComposableEffect enum A {}")
        let finding = try #require(expansion.findings.first)
        #expect(finding.message == "'@ComposableEffect' needs at least one case to compose")
        #expect(finding.token == "A")
        #expect(!expansion.text.contains("merge"))
    }

    @Test("a name conflict is diagnosed", arguments: ["merge", "concat"])
    func clash(name: String) throws {
        let source = "@ComposableEffect enum A {\n    case \(name)(Int)\n    case fetch\n}"
        let expansion = Expansion(source)
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message == "'@ComposableEffect' adds a case '\(name)' that runs several effects: "
                + "rename this case")
        #expect(finding.token == name)
        #expect(finding.fixes.map(\.source) == [source.replacing("\(name)(", with: "\(name)Effects(")])
        #expect(!expansion.text.contains("asComposableEffect"))
    }
}
