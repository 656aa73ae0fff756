import ClientGenerator
import Testing

/// Unsupported code is reported with its position and advice.
@Suite struct MacroDiagnosticTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let source: String
        /// The start of each message, after the file's name.
        let messages: [String]

        init(_ source: String, _ messages: String...) { (self.source, self.messages) = (source, messages) }

        var testDescription: String { messages.first ?? source }
    }

    static let rows: [Row] = [
        Row(
            echo("A", "struct A: Codable {\n    func encode(to encoder: any Encoder) throws {}\n}"),
            "3:10: error: 'A' has a custom 'encode(to:)'"),
        Row(
            echo("A", "struct A { var a = 1 }\nextension A: Codable {\n  init(from decoder: any Decoder) throws {}\n}"),
            "4:3: error: 'A' has a custom 'init(from:)'"),
        Row(
            echo(
                "A",
                "extension Foreign {\n  func encode(to encoder: any Encoder) throws {}\n}\nstruct A: Foreign, Codable {}"
            ),
            "3:8: error: 'A' has a custom 'encode(to:)'"),
        Row(
            echo(
                "A",
                "protocol P {}\nextension P {\n  func encode(to encoder: any Encoder) throws {}\n}\nstruct A: P, Codable {}"
            ),
            "4:8: error: 'A' has a custom 'encode(to:)'"),
        Row(
            echo("A", "struct A { var a = 1 }"),
            "2:8: error: 'A' is sent, but the sources do not declare it Codable"),
        Row(echo("A", "struct A: Encodable { var a = 1 }"), "2:8: error: 'A' is sent, but the sources"),
        Row(
            echo("[CLLocation]"), "1:69: error: 'CLLocation' is not declared",
            "1:86: error: 'CLLocation' is not declared"),
        Row(echo("A", "struct A: Codable { var a: any Error }"), "2:28: error: 'any Error' is an existential"),
        Row(echo("A", "protocol P: Codable {}\nstruct A: Codable { var a: P }"), "3:28: error: 'P' is a protocol"),
        Row(
            echo("A", "struct A: Codable { var a: (Int, Int) }"),
            "2:28: error: '(Int, Int)' is a tuple, which is not Codable; use a struct"),
        Row(echo("A", "struct A: Codable { var a: @Sendable () -> Void }"), "2:38: error: '() -> Void' is a function"),
        Row(
            echo("A", "struct A: Codable { var a: Substring }"), "2:28: error: 'Substring' cannot be sent"),
        Row(echo("A", "struct A: Codable { var a = make() }"), "2:25: error: the type of 'a' cannot be inferred"),
        Row(
            echo("A", "struct A: Codable { @Clamped var a: Int }"),
            "2:34: error: the JSON form of the property wrapper '@Clamped' is unknown"),
        Row(echo("A", "struct A: Codable { lazy var a: Int = 1 }"), "2:30: error: 'a' is lazy"),
        Row(echo("A", "@Observable final class A: Codable { var a = 1 }"), "2:25: error: 'A' is marked '@Observable'"),
        Row(echo("B", "class A: Codable { var a = 1 }\nclass B: A, Codable {}"), "3:7: error: 'B' inherits from 'A'"),
        Row(
            echo("A", "struct A: Codable { var a = 1; struct CodingKeys: CodingKey {} }"),
            "2:39: error: 'A.CodingKeys' is not an enum"),
        Row(echo("A", "enum A: Codable {}"), "2:6: error: 'A' has no cases"),
        Row(
            echo("A", "enum A: Int, Codable { case a = 9_007_199_254_740_993 }"),
            "2:33: error: JavaScript cannot represent this integer"),
        Row(
            echo("P<String>", "struct P<K: Codable & Hashable>: Codable { var a: [K: Int] }"),
            "2:52: error: the JSON form of a dictionary depends on its key type"),
        Row(
            echo("A", "// trebuchet: Typescript = number\nstruct A: Codable {}"),
            "3:8: error: unknown directive '// trebuchet: Typescript = number'; known are 'TypeScript = …'"),
        Row(
            echo("A", "// trebuchet: TypeScript = { a: number\nstruct A: Codable {}"),
            "3:8: error: unknown directive '// trebuchet: TypeScript = { a: number'"),
        Row(echo("🐶", "struct 🐶: Codable {}"), "2:8: error: '🐶' is not a TypeScript name"),
        Row(
            echo(
                "A.B",
                "struct A { struct B: Codable {} }\nstruct AB: Codable {}\n@Trebuchet distributed actor X { distributed func x(_ a: AB) {} }"
            ),
            "3:8: error: 'AB' and 'A.B' (Sources/App/App.swift:2:19) both have the TypeScript name 'AB'"),
        Row(
            echo(
                "XReference",
                "struct XReference: Codable {}\n@Trebuchet distributed actor X { distributed func x(_ a: X) {} }"),
            "3:30: error: 'the name of an actor X' and 'XReference' (Sources/App/App.swift:2:8) both have the TypeScript name 'XReference'"
        ),
        Row(echo("A", "typealias A = B\ntypealias B = A"), "2:11: error: 'A' refers to itself"),
        Row(
            echo("A", "actor A: Codable {}"), "1:68: error: 'A' is an actor that is not distributed",
            "1:74: error: 'A' is an actor that is not"),
        Row(
            echo("P", "struct P<T: Codable>: Codable { var t: T }"),
            "1:68: error: 'P' requires its generic arguments here: T", "1:74: error: 'P' requires"),
        Row(
            "@Trebuchet distributed actor A {\n  @StreamedState var state = make()\n}",
            "2:22: error: the type of 'state' cannot be inferred"),
        Row(
            "@Trebuchet distributed actor A {\n  distributed func a() {}\n  distributed func a(_ b: Int) {}\n  distributed func aB() {}\n}",
            "4:20: error: 'aB' is the TypeScript name of two members of 'A'"),
        Row(
            "@Trebuchet distributed actor A<T: Codable & Sendable> {}",
            "1:30: warning: 'A' is omitted: a TypeScript client",
            "error: the sources have no actor with '@Trebuchet'"),
        Row(
            "@Trebuchet distributed actor A {\n  distributed func a(_ b: some Codable) {}\n}",
            "2:20: warning: 'a(_:)' is omitted: a TypeScript client"),
        Row(
            "@Trebuchet distributed actor A {}\nextension A {\n  distributed func a() {}\n}",
            "3:20: warning: 'a()' is omitted: methods in extensions"),
        Row(
            "@Trebuchet distributed actor A {\n  distributed func a() throws(E) {}\n}\nstruct E: Error {}",
            "2:31: warning: 'E' is not Codable"),
        Row(echo("A", "struct A: Codable { var a: Int64 }"), "2:28: warning: 'Int64' maps to 'number'"),
        Row(
            echo("[Date: Int]"), "1:69: warning: keys of this type are objects",
            "1:85: warning: keys of this type are objects"),
        Row("struct A {}", "error: the sources have no actor with '@Trebuchet'"),
    ]

    @Test("a problem has a position and advice", arguments: rows)
    func problem(row: Row) {
        let messages = generated(row.source).messages
        #expect(messages.count == row.messages.count, "\(messages)")
        for expected in row.messages {
            #expect(
                messages.contains {
                    $0.replacing("Sources/App/App.swift:", with: "", maxReplacements: 1).hasPrefix(expected)
                },
                "\(expected) is missing in \(messages)")
        }
    }

    @Test("types of one name in several files are distinguished by visibility")
    func severalFiles() {
        let generation = generated([
            "Sources/A/A.swift": echo("Item", "private struct Item: Codable { var a: Int }"),
            "Sources/A/B.swift": "private struct Item: Codable { var b: Int }",
            "Sources/B/C.swift": "struct Item: Codable { var c: Int }",
        ])
        #expect(generation.messages == [])
        #expect(generation.typeScript.contains("interface Item {\n    a: number\n}"))
        let imported = generated([
            "Sources/App/App.swift": "import B\n" + echo("Item"),
            "Sources/A/A.swift": "public struct Item: Codable { var a: Int }",
            "Sources/B/B.swift": "public struct Item: Codable { var b: Int }",
        ])
        #expect(imported.typeScript.contains("interface Item {\n    b: number\n}"))
        let ambiguous = generated([
            "Sources/App/App.swift": "import A\nimport B\n" + echo("Item"),
            "Sources/A/A.swift": "public struct Item: Codable { var a: Int }",
            "Sources/B/B.swift": "public struct Item: Codable { var b: Int }",
        ])
        #expect(
            ambiguous.messages.first?.hasPrefix(
                "Sources/App/App.swift:3:68: error: 'Item' is declared several times (Sources/A/A.swift:1:15, Sources/B/B.swift:1:15)"
            ) == true)
        let qualified = generated([
            "Sources/App/App.swift": "import A\nimport B\n" + echo("A.Item"),
            "Sources/A/A.swift": "public struct Item: Codable { var a: Int }",
            "Sources/B/B.swift": "public struct Item: Codable { var b: Int }",
        ])
        #expect(qualified.messages == [])
        #expect(qualified.typeScript.contains("interface Item {\n    a: number\n}"))
    }
}
