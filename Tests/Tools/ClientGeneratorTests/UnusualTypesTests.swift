import ClientGenerator
import Foundation
import Testing

/// Types that are hard to parse, and their output.
@Suite struct UnusualTypesTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let type: String
        let declarations: String
        /// Texts that the generated file must contain.
        let expected: [String]
        var bigint = false
        var defines: Set<String> = []

        init(
            _ type: String, _ declarations: String = "", _ expected: String..., bigint: Bool = false,
            defines: Set<String> = []
        ) {
            (self.type, self.declarations, self.expected) = (type, declarations, expected)
            (self.bigint, self.defines) = (bigint, defines)
        }

        var testDescription: String { "\(type) \(declarations.prefix(60))" }
    }

    static let rows: [Row] = [
        // Names.
        Row("`class`", "struct `class`: Codable { var `in`: Int }", "export interface class_ {\n    in: number\n}"),
        Row("Map", "struct Map: Codable { var a = 1 }", "export interface Map_ {", "value: Map_,"),
        Row("Größe", "struct Größe: Codable { let wert: Double }", "export interface Größe {\n    wert: number\n}"),
        Row("🐶", "// trebuchet: name = Dog\nstruct 🐶: Codable { let 🐱: String }", "interface Dog {\n    \"🐱\": string"),
        Row("A", "struct A: Codable { var `two words`: Int }", "    \"two words\": number"),
        Row("A", "struct A: Codable { var __proto__: Date }", #"struct({ ["__proto__"]: date })"#),
        Row("keyof", "struct keyof: Codable { var a: Int }", "export interface keyof_ {", "value: keyof_,"),
        Row("unique", "struct unique: Codable { var a: Int }", "export interface unique_ {", "value: unique_,"),
        Row("infer", "struct infer: Codable { var a: Int }", "export interface infer_ {", "value: infer_,"),
        Row("asserts", "struct asserts: Codable { var a: Int }", "export interface asserts_ {", "value: asserts_,"),
        Row(
            "P<Int>", "struct P<string: Codable>: Codable { var a: string }",
            "export interface P<string_> {\n    a: string_"),
        Row(
            "P<Int>", "struct P<`Q> {}; alert(); interface R<S`>: Codable { var a: Int }", "export interface P<T_51_3e_"
        ),
        Row("Foundation.Date", "struct Date: Codable {}", "echo(value: Date,"),
        // Comments and texts that could end their enclosing construct.
        Row(
            "A", "/// Ends */ alert(1) /* here\nstruct A: Codable {\n    /** a\n * /* b */ c */ let a: Int }",
            #"/** Ends *\/ alert(1) /* here */"#, "     * /* b *\\/ c\n"),
        Row(
            "A", "/// Ends *\u{202A}/ alert(1); /\u{2066}* here *\u{1}\u{7F}/\nstruct A: Codable { let a: Int }",
            #"/** Ends *\/ alert(1); /* here *\/ */"#),
        Row(
            "A", #"enum A: String, Codable { case a = "\"\\\n\u{2028}*/", b }"#,
            #"export type A = "\"\\\n\u2028*/" | "b""#),
        Row(
            "A", #"struct A: Codable { var a: Int; enum CodingKeys: String, CodingKey { case a = "x\"y" } }"#,
            #""x\"y": number"#),
        // Scopes of types.
        Row(
            "Outer.Inner", "enum Outer { struct Inner: Codable { var a: Self.Deep? ; struct Deep: Codable {} } }",
            "a?: OuterInnerDeep"),
        Row(
            "A.B", "struct A {}; extension A { struct B {} }; extension A.B: Codable {}",
            "export type AB = Record<string, never>"),
        Row(
            "Model",
            "typealias Model = [String: [Other?]]; typealias Other = Inner; struct Inner: Codable { var a = 1.5 }",
            "value: Record<string, (Inner | null)[]>"),
        Row(
            "Pair<Int>",
            "typealias Pair<T> = Two<T, [T]>; struct Two<A: Codable, B: Codable>: Codable { var a: A; var b: B }",
            "export interface Two<A, B> {\n    a: A\n    b: B\n}", "value: Two<number, number[]>"),
        Row(
            "Box<Date>.Inside<Int>",
            "struct Box<V: Codable> { struct Inside<W: Codable>: Codable { var v: V; var w: W? } }",
            "interface BoxInside<V, W> {\n    v: V\n    w?: W\n}", "BoxInside<Date, number>",
            "BoxInsideOfDateAndIntCodec"),
        Row(
            "A",
            "protocol Sent: Codable, Sendable {}; struct A: Sent { var id: UUID; var other: A.ID? }; extension A: Identifiable {}",
            "other?: UUID"),
        Row(
            "A",
            "typealias Wire = Codable & Sendable; struct A: Wire { let b: B }; struct B: Wire, Hashable { var c: C.RawValue }; "
                + "enum C: Int, Codable { case a }", "c: number"),
        // Stored properties and others.
        Row(
            "A",
            "struct A: Codable { static let s = 1; var a, b: Int; var c: Int { 1 }; var d = 0 { didSet {} }; let e = \"x\"; "
                + "var f = [String](); var g: String? { get { nil } }; private(set) var h = false; private var i = 1.5 }",
            "interface A {\n    a: number\n    b: number\n    d: number\n    e: string\n    f: string[]\n    h: boolean\n    i: number\n}"
        ),
        Row("A", "struct A: Codable { @DeltaValue var a: Date? = nil }", "a: Date | null", "struct({ a: date })"),
        Row(
            "A", "struct A: Codable { var a: Int??; var b: [Int??]; var c: Optional<Optional<Date>> }",
            "a?: number | null\n    b: (number | null)[]\n    c?: Date | null"),
        Row(
            "A", "struct A: Codable { var a: Int!; var b: (Int); var c: Set<[ClosedRange<Double>]> }",
            "a?: number\n    b: number\n    c: [number, number][][]"),
        Row(
            "A", "struct A: Codable { var a = B.one; var b = B.two(1) }; enum B: Codable { case one, two(Int) }",
            "interface A {\n    a: B\n    b: B\n}"),
        // Conditions.
        Row(
            "A",
            "struct A: Codable {\n#if DEBUG\nvar a: Int\n#elseif os(Linux) && !canImport(SwiftUI)\nvar b: Int\n#endif\n}",
            "interface A {\n    b: number\n}"),
        Row(
            "A", "struct A: Codable {\n#if DEBUG\nvar a: Int\n#else\nvar b: Int\n#endif\n}",
            "interface A {\n    a: number\n}", defines: ["DEBUG"]),
        Row(
            "A", "enum A: Codable {\n#if !(DEBUG || os(macOS))\ncase a\n#endif\ncase b }",
            "{ a: Record<string, never> } | { b: Record<string, never> }"),
        // Enums.
        Row(
            "A", "enum A: Int16, Codable { case a, b = 0x10, c, d = -1_0, e }", "export type A = 0 | 16 | 17 | -10 | -9"
        ),
        Row(
            "A", "typealias Raw = String; enum A: Raw, Codable { case `default`, b }",
            #"export type A = "default" | "b""#),
        Row(
            "A", "indirect enum A: Codable { case leaf, node(A, at: Date?, _ c: [A]) }",
            "{ leaf: Record<string, never> } | { node: { _0: A; at?: Date; _2: A[] } } | UnknownCase",
            "lazy(() => ACodec)"),
        Row(
            "A",
            "enum A: Codable { case a(Int), b; enum CodingKeys: String, CodingKey { case a = \"is-a\", b }; "
                + "enum ACodingKeys: String, CodingKey { case _0 = \"value\" } }", #"{ "is-a": { value: number } }"#),
        Row("[A: Int]", "enum A: String, Codable { case a }", "Map<A, number>", "arguments: [/*#__PURE__*/ map()]"),
        Row("[A: Int]", "enum A: String, Codable, CodingKeyRepresentable { case a }", "Partial<Record<A, number>>"),
        Row(
            "[A: Int]", "struct A: RawRepresentable, Codable, Hashable { var rawValue: Int }",
            "number & { readonly __brand: \"A\" }", "Map<A, number>"),
        // Instruction comments.
        Row(
            "A",
            "// trebuchet: TypeScript = { a: string }[]\nstruct A: Codable { func encode(to encoder: any Encoder) throws {} }",
            "export type A = { a: string }[]"),
        Row(
            "A",
            "// trebuchet: as declared\nstruct A: Codable { var a: Int; init(from decoder: any Decoder) throws { a = 1 } }",
            "a: number"),
        Row(
            "A", "struct A: Codable {\n    // trebuchet: TypeScript = [number, number]\n    var place: CLLocation?\n}",
            "place?: [number, number]"),
        Row(
            "Place", "// trebuchet: TypeScript = 'a' | 'b'\ntypealias Place = CLLocation",
            "export type Place = 'a' | 'b'"),
        Row(
            "CLLocation", "// trebuchet: TypeScript = [number]\nextension CLLocation: @retroactive Codable {}",
            "echo(value: [number]"),
        Row(
            "A",
            "struct A: Codable {\n    // trebuchet: bigint\n    var a: [Int64?]\n    // trebuchet: number\n    var b: UInt64\n}",
            "a: (bigint | null)[]\n    b: number", "array(/*#__PURE__*/ nullable(bigint))"),
        Row("[UInt64]", "", "bigint[]", bigint: true),
        Row(
            "Tree", "final class Tree: Codable { let a: Date; let children: [String: Tree] }",
            "record(/*#__PURE__*/ lazy(() => TreeCodec))"),
        Row(
            "Loop", "struct Loop: Codable { var all: [Loop]; var id: UUID }", "all: Loop[]",
            "echo: { target: \"echo(_:)\" }"),
    ]

    @Test("a type has its form on the wire", arguments: rows)
    func type(row: Row) {
        let generation = generated(echo(row.type, row.declarations), bigint: row.bigint, defines: row.defines)
        #expect(generation.messages == [])
        for expected in row.expected {
            #expect(generation.typeScript.contains(expected), "\(expected) is missing in\n\(generation.typeScript)")
        }
    }

    @Test("the files compile under tsc --strict", .enabled(if: Run.exists("tsc")))
    func compiles() throws {
        try withTemporaryFolder { folder in
            let files = Self.rows.enumerated().map { index, row in
                (
                    "row\(index).ts",
                    generated(echo(row.type, row.declarations), bigint: row.bigint, defines: row.defines).typeScript
                )
            }
            try compile(files, in: folder)
        }
    }
}
