import Testing

@Suite struct DocumentationRulesTests {
    private func found(_ text: String, path: String = "Sources/State/Relays/File.swift") -> [String] {
        DocumentationRules.findings(in: SourceText(path: path, text)).map { String($0.message.prefix { $0 != " " }) }
    }

    @Test(
        "a public declaration without a doc comment is found",
        arguments: [
            ("public struct Name {}", "Name"), ("open class Name {}", "Name"), ("    public var name: Int", "name"),
            ("public private(set) var name = 1", "name"), ("public static func name<T>(_ t: T) {}", "name"),
            ("@inlinable public func name() {}", "name"), ("nonisolated public let name: Int", "name"),
            ("    public init() {}", "init"), ("public subscript(at: Int) -> Int { 1 }", "subscript"),
            ("public func encode(_ value: Int) {}", "encode"), ("public final class Name {}", "Name"),
            ("// a plain comment\npublic func name() {}", "name"), ("/// Of x.\nvar x = 1\npublic var y = 2", "y"),
            ("public distributed actor Name {}", "Name"), ("public class func name() {}", "name"),
            ("@available(*, deprecated) public struct Name<T>: Sendable {}", "Name"),
            ("public func ~= (a: Int, b: Int) -> Bool { true }", "~="),
            ("public nonisolated(unsafe) static var name = 1", "name"),
            ("/// Says it.\npublic enum Name {\n    case first, second\n}", "first"),
            ("/// Says it.\npublic protocol Name {\n    func name()\n}", "name"),
            ("public extension Name {\n    func name() {}\n}", "name"),
            ("/// Says it.\npublic struct Name<T>\nwhere T: Sendable {\n    public var name: T\n}", "name"),
            ("    /// Says it.\n    func other(\n        a: Int\n    )\n    public func name() {}", "name"),
        ])
    func missing(text: String, name: String) {
        #expect(found(text) == [name])
    }

    @Test(
        "declarations with a comment, witnesses, underscored names and non-public declarations are accepted",
        arguments: [
            "/// Says it.\npublic struct Name {}", "/// Says it.\n@frozen\npublic struct Name {}",
            "/// Says it.\n#if os(Linux)\npublic func name() {}\n#endif", "/** Says it. */\npublic var name: Int",
            "public func hash(into hasher: inout Hasher) {}", "public func encode(to encoder: any Encoder) throws {}",
            "public init(from decoder: any Decoder) throws {}", "public var description: String { text }",
            "public static func == (a: Self, b: Self) -> Bool { true }", "public func _made() {}",
            "@_documentation(visibility: internal)\npublic func name() {}", "package func name() {}",
            "open(file)", "open = OpenFiles(limits)", "public static func < (a: Self, b: Self) -> Bool { true }",
            "public extension Name {}", "public import Relays", "let text = \"public func name()\"",
            "enum Name {\n    case first\n}", "protocol Name {\n    func name()\n}",
            "/// Says it.\npublic enum Name {\n    var text: Int {\n        switch self {\n        case first: 1\n        }\n    }\n}",
            "@_documentation(visibility: internal)\npublic struct Name {\n    public func name() {}\n}",
            "@_documentation(visibility: internal)\nextension Name {\n    public func name() {}\n}",
            "public extension Name {\n    private func name() {}\n}",
            "public extension Name {\n    /// Says it.\n    func f() {}\n}",
            "/// Says it.\n@available(\n    *, unavailable,\n    message: \"text\"\n)\npublic func name() {}",
            "public func makeAsyncIterator() -> Iterator { Iterator() }\npublic struct Iterator {}",
            "public typealias Element = Int",
        ])
    func fine(text: String) {
        #expect(found(text) == [])
    }

    @Test("modules that belong to no product are ignored")
    func others() {
        #expect(found("public struct Name {}", path: "Sources/Base/Bytes/File.swift") == [])
        #expect(found("public struct Name {}", path: "Tests/Base/Relays/File.swift") == [])
    }
}
