import Testing

@Suite("@Wire")
struct WireMacroTests {
    @Test("@Wire generates the code of a struct in member order, and its Codable conformance")
    func members() {
        let expansion = Expansion(
            """
            @Wire public struct Order {
                var id: UUID
                public let note: String?
                private var `default` = 1 { didSet { log() } }
                let version = 2
                static let most = 3
                var isLong: Bool { true }
                func log() {}
            }
            """)
        #expect(expansion.findings.isEmpty)
        #expect(
            expansion.contains(
                """
                extension Order: Swift.Decodable, Swift.Encodable, TrebuchetActors._WireValue {
                private enum CodingKeys: Swift.String, Swift.CodingKey {
                case id
                case note
                case `default`
                case version
                }
                """))
        #expect(
            expansion.contains(
                #"""
                public init(_wire reader: inout TrebuchetActors._WireReader) throws {
                try reader.begin()
                self.id = try reader.member("\"id\":", (UUID).self)
                self.note = try reader.member("\"note\":", (String?).self)
                self.`default` = try reader.member("\"default\":", (Int).self)
                try reader.pass("\"version\":")
                try reader.end()
                }
                public func _write(wire writer: inout TrebuchetActors._WireWriter) throws {
                try writer.begin()
                try writer.member("\"id\":", self.id)
                try writer.member("\"note\":", self.note)
                try writer.member("\"default\":", self.`default`)
                try writer.member("\"version\":", self.version)
                writer.end()
                }
                """#))
        #expect(
            expansion.contains(
                """
                if let value = Self._readDirectly(from: decoder) {
                self.id = value.id
                self.note = value.note
                self.`default` = value.`default`
                return
                }
                let container = try decoder.container(keyedBy: CodingKeys.self)
                self.id = try container._wireMember((UUID).self, .id)
                """))
    }

    @Test("the generated code of a struct with a deprecated property is deprecated")
    func deprecated() {
        let expansion = Expansion(
            "@Wire struct Item {\n@available(*, deprecated, message: \"use 'title'\") var name: String?\nvar title: String\n}"
        )
        #expect(expansion.findings.isEmpty)
        for member in [
            "init(from decoder: any Swift.Decoder) throws {", "func encode(to encoder: any Swift.Encoder) throws {",
            "init(_wire reader: inout TrebuchetActors._WireReader) throws {",
            "func _write(wire writer: inout TrebuchetActors._WireWriter) throws {",
        ] {
            #expect(expansion.contains("@available(*, deprecated)\n\(member)"), "\(expansion.text)")
        }
    }

    @Test("an enum is coded by its raw value")
    func rawValues() {
        for type in ["String", "Int", "Swift.UInt8"] {
            let expansion = Expansion("@Wire enum Mode: \(type), Sendable { case a, b }")
            #expect(expansion.findings.isEmpty)
            #expect(expansion.contains("self = try reader.raw(Self.self)"))
            #expect(!expansion.text.contains("CodingKeys"))
        }
    }

    @Test("members of a public extension are public")
    func placedInExtension() {
        let expansion = Expansion("public extension Shop { @Wire struct Order { var id: Int } }")
        #expect(expansion.text.contains("public init(_wire"))
        #expect(Expansion("@Wire struct Order { var id: Int }").lines.contains { $0.hasPrefix("init(_wire") })
    }

    @Test(
        "a type that @Wire cannot support is diagnosed, and keeps its Codable conformance",
        arguments: [
            ("struct A<T> { var a: Int }", "'@Wire' has no effect on a generic type", "<"),
            (
                "struct A { var a: Int\n#if DEBUG\nvar b: Int\n#endif\n}",
                "'@Wire' has no effect on a type with members under '#if'", "#if"
            ),
            (
                "struct A { var a: Int\nenum CodingKeys: String, CodingKey { case a = \"b\" } }",
                "'@Wire' has no effect on a type that declares 'CodingKeys'", "CodingKeys"
            ),
            (
                "struct A { var a: Int\ninit(from decoder: any Decoder) throws { a = 1 } }",
                "'@Wire' has no effect on a type that declares 'init(from:)'", "init"
            ),
            (
                "struct A { var a: Int\nfunc encode(to encoder: any Encoder) throws {} }",
                "'@Wire' has no effect on a type that declares 'encode(to:)'", "encode"
            ),
            ("struct A { @Clamped var a: Int }", "'@Wire' cannot determine the effect of the attribute on 'a'", "@"),
            ("struct A { lazy var a: Int = 1 }", "'@Wire' has no effect on a type with a 'lazy' property", "lazy"),
            ("struct A { var a = make() }", "'@Wire' cannot infer the type of 'a': add a type annotation", "a"),
            ("struct A { var (a, b) = (1, 2) }", "'@Wire' requires properties with one name each", "("),
            (
                "enum A { case a, b(Int) }",
                "'@Wire' has no effect on an enum without string or integer raw values", "A"
            ),
            (
                "enum A: Double { case a }",
                "'@Wire' has no effect on an enum without string or integer raw values", "A"
            ),
        ])
    func nothing(source: String, message: String, token: String) throws {
        let expansion = Expansion("@Wire \(source)")
        let finding = try #require(expansion.findings.first)
        #expect(expansion.findings.count == 1)
        #expect(finding.message == message + "; only 'Codable' encodes it")
        #expect(finding.token == token)
        #expect(!expansion.text.contains("_WireValue"))
        let isGeneric = source.contains("<T>")
        #expect(expansion.text.contains("extension A: Swift.Decodable, Swift.Encodable") != isGeneric)
    }

    @Test("@Wire applies to structs and enums only", arguments: ["final class A {}", "actor A {}", "protocol A {}"])
    func otherKinds(source: String) throws {
        let expansion = Expansion("@Wire \(source)")
        let finding = try #require(expansion.findings.first)
        #expect(finding.message == "'@Wire' can only be attached to a struct, or to an enum with raw values")
        #expect(finding.token == "@")
        #expect(!expansion.text.contains("extension"))
    }
}
