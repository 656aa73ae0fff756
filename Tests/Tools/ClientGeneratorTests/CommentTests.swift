import ClientGenerator
import Testing

/// Instruction comments at each supported position.
@Suite struct CommentTests {
    @Test("a TypeScript type in a comment applies at each position")
    func types() {
        let generation = generated(
            """
            @Trebuchet distributed actor A {
                // trebuchet: TypeScript = "state"
                @StreamedState var state = make()
                // trebuchet: TypeScript = "event"
                @StreamedEvents var events: CLLocation
                // trebuchet: TypeScript = "result"
                distributed func a() -> CLLocation {}
                distributed func b(
                    // trebuchet: TypeScript = "parameter"
                    _ value: CLLocation,
                    other: B
                ) {}
                /// Documented.
                // trebuchet: TypeScript = "property"
                distributed var c: CLLocation { get }
            }
            enum B: Codable {
                // trebuchet: TypeScript = "value"
                case one(CLLocation)
                // trebuchet: TypeScript = "maybe"
                case other(at: CLLocation?)
            }
            """)
        #expect(generation.messages == [])
        for expected in [
            "state: \"state\"\n", "events: \"event\"\n", "a(options?: CallOptions): Call<\"result\">",
            "b(value: \"parameter\", other: B, options?: CallOptions)", "c(options?: CallOptions): Call<\"property\">",
            "{ one: { _0: \"value\" } } | { other: { at?: \"maybe\" } }", "/** Documented. */",
        ] {
            #expect(generation.typeScript.contains(expected), "\(expected) is missing in\n\(generation.typeScript)")
        }
    }

    @Test("64-bit integer instructions apply at each position, and the nearest one wins")
    func integers() {
        let generation = generated(
            """
            // trebuchet: bigint
            @Trebuchet distributed actor A {
                @StreamedState var state: [Int64] = []
                // trebuchet: number
                distributed func a(_ value: Int64, _ other: B) -> UInt64 {}
                distributed func b(
                    _ value: Int64,
                    // trebuchet: number
                    other: Wide
                ) {}
            }
            typealias Wide = UInt64
            // trebuchet: bigint
            struct B: Codable {
                var a: Int64
                // trebuchet: number
                var b: UInt64
            }
            """)
        #expect(generation.messages == [])
        for expected in [
            "state: bigint[]\n", "a(value: number, other: B, options?: CallOptions): Call<number>",
            "b(value: bigint, other: number, options?: CallOptions)", "    a: bigint\n    b: number\n",
        ] {
            #expect(generation.typeScript.contains(expected), "\(expected) is missing in\n\(generation.typeScript)")
        }
    }

    @Test("skipped declarations are omitted, whatever their faults")
    func skip() {
        let generation = generated(
            """
            // trebuchet: skip
            @Trebuchet distributed actor A<T> { distributed func a(_ b: any Error) {} }
            @Trebuchet distributed actor B {
                // trebuchet: skip
                @StreamedState var state = make()
                // trebuchet: skip
                @StreamedEvents var events: CLLocation
                // trebuchet: skip
                distributed func a<T: Codable>(_ value: T) {}
                distributed func b() {}
            }
            """)
        #expect(generation.messages == [])
        #expect(generation.model.actors.map(\.name) == ["B"])
        #expect(generation.model.actors[0].methods.map(\.name) == ["b"])
        #expect(generation.model.actors[0].states.isEmpty && generation.model.actors[0].events.isEmpty)
    }

    @Test(
        "a TypeScript type of several parts is copied verbatim",
        arguments: [
            "{ a: string; b?: number[] }", "(a: Array<string>) => void", #"'it\'s' | "\"" | "\\""#, "`user-${string}`",
            "Map<string, Set<number>>",
            #""; // =" | "😀""#, "`$` | `{`",
        ])
    func copiedType(text: String) {
        let generation = generated(echo("A", "// trebuchet: TypeScript = \(text)\nstruct A: Codable {}"))
        #expect(generation.messages == [])
        #expect(generation.typeScript.contains("export type A = \(text)\n"))
    }

    @Test(
        "an incomplete instruction comment is rejected",
        arguments: [
            "TypeScript =", "TypeScript = { a: number", "TypeScript = number }", "TypeScript = \"a",
            "TypeScript = a /* b",
            "TypeScript = number; export const x = 1", "TypeScript = string\u{2028}alert()",
            #"TypeScript = "\""; alert(); let q = "\"""#,
            #"TypeScript = "\\"; alert(); let q = "\\""#, "TypeScript = \"a\"\u{301}; alert(); let q = \"b\"\u{301}",
            "TypeScript = `${\"`\"}`; alert(); let q = \"`\"", "TypeScript = string >",
            "TypeScript = string> = alert(), b: Array<string",
            "TypeScript = string = alert()", "TypeScript = a // b", #"TypeScript = \u0061"#, "name = two words",
            "name = class-1", "bigints", "",
        ])
    func refused(text: String) {
        let generation = generated(echo("A", "// trebuchet: \(text)\nstruct A: Codable {}"))
        #expect(generation.hasErrors)
        #expect(
            generation.messages.first?.hasPrefix("Sources/App/App.swift:3:8: error: unknown directive '// trebuchet:")
                == true)
    }
}
