import Testing

@Suite("@CasePathable")
struct CasePathableTests {
    @Test("@CasePathable generates a path for each kind of case")
    func paths() {
        let expansion = Expansion(
            """
            @CasePathable
            public enum Action {
                case tap
                case number(Int)
                case circle(radius: Double)
                case pair(id: Int, String)
                indirect case tree([Self])
            }
            """)
        #expect(expansion.findings.isEmpty)
        #expect(expansion.contains("public struct AllCasePaths: Swift.Sendable {"))
        #expect(expansion.contains("public static var allCasePaths: AllCasePaths {"))
        #expect(expansion.contains("public var tap: StateMachines.AnyCasePath<Action, Swift.Void> {"))
        #expect(expansion.contains("embed: Action.number,"))
        #expect(expansion.contains("embed: Action.circle(radius:),"))
        #expect(expansion.contains("guard case .circle(radius: let value0) = root else {"))
        #expect(expansion.contains("public var pair: StateMachines.AnyCasePath<Action, (id: Int, String)> {"))
        #expect(expansion.text.contains(".pair(id: $0.0, $0.1)"))
        #expect(expansion.contains("return (value0, value1)"))
        #expect(expansion.contains("public var tree: StateMachines.AnyCasePath<Action, [Action]> {"))
        #expect(expansion.contains("extension Action: StateMachines.CasePathable {"))
    }

    @Test("the backticks of a name and the condition of a case are kept")
    func namesAndConditions() {
        let expansion = Expansion(
            """
            @CasePathable enum Action {
                case `default`(`in`: Int)
                #if DEBUG
                case probe
                #endif
            }
            """)
        #expect(expansion.contains("var `default`: StateMachines.AnyCasePath<Action, Int> {"))
        #expect(expansion.text.contains("name: \"default\""))
        #expect(expansion.contains("#if (DEBUG)"))
        #expect(expansion.findings.isEmpty)
    }

    @Test("an unsupported type is diagnosed", arguments: ["struct", "class", "actor"])
    func wrongKind(kind: String) throws {
        let expansion = Expansion("@CasePathable \(kind) A {}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message == "'@CasePathable' can only be attached to an enum")
        #expect(finding.token == kind)
        #expect(finding.fixes.map(\.source) == ["\(kind) A {}"])
        #expect(expansion.lines == ["\(kind) A {}"] || expansion.lines == ["\(kind) A {", "}"])
    }

    @Test("two cases that a key path cannot distinguish are diagnosed")
    func overloads() throws {
        let expansion = Expansion("@CasePathable enum A {\n    case a(x: Int)\n    case a(y: Int)\n}")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(
            finding.message
                == "'@CasePathable' found two cases named 'a': rename one of them")
        #expect(finding.line == 3)
        #expect(finding.notes == ["the other 'a' is here"])
        #expect(!expansion.text.contains("extension"))
    }
}
