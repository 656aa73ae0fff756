import Testing

struct FolderRulesTests {
    private func findings(
        _ files: [String: String], layers: [[String]] = [["Low", "Side"], ["."]]
    ) -> [Finding] {
        let standing = [
            "Low/L.swift": "struct Low {}", "Side/S.swift": "struct Side {}", "Root.swift": "struct Root {}",
        ]
        let all = standing.merging(files) { $0 + "\n" + $1 }
        return FolderRules.findings(
            in: all.sorted { $0.key < $1.key }.map { SourceText(path: "Sources/House/\($0.key)", $0.value) },
            layers: ["House": layers])
    }

    @Test("a folder may use only declarations of lower layers")
    func uses() {
        #expect(findings(["Root.swift": "let low: Low"]).isEmpty)
        #expect(findings(["Low/L.swift": "let root: Root"]).map(\.line) == [2])
        #expect(findings(["Low/L.swift": "let side: Side"]).map(\.line) == [2])
        #expect(findings(["Root.swift": "struct _High {}", "Low/L.swift": "let high: _High"]).count == 1)
    }

    @Test(
        "text that only looks like the name of a type does not count as a use",
        arguments: [
            "// Root", "let a = \"Root\"", "let a: Other.Root", "let a: Roots", "let root = 1", "/* Root */",
            "struct Own {\n    struct Root {}\n    let a: Root\n}",
            "protocol Own {\n    associatedtype Root\n    var a: Root { get }\n}",
        ])
    func noUses(text: String) {
        #expect(findings(["Low/L.swift": text]).isEmpty)
    }

    @Test("a name that two folders declare, or that is private to a file, is ignored")
    func ambiguous() {
        #expect(findings(["Side/S.swift": "enum Root {}", "Low/L.swift": "let a: Root"]).isEmpty)
        #expect(findings(["Root.swift": "private enum Own {}", "Low/L.swift": "let a: Own"]).isEmpty)
    }

    @Test("a name imported with its kind is declared elsewhere")
    func imports() {
        #expect(findings(["Root.swift": "public import struct Tools.Tool", "Low/L.swift": "import Tools"]).isEmpty)
    }

    @Test("attributes, access and interpolation do not hide a declaration or a use")
    func found() {
        let declaration = "@frozen public indirect enum High<A> {}"
        #expect(findings(["Root.swift": declaration, "Low/L.swift": "let a = \"\\(High.a)\""]).count == 1)
    }

    @Test("a folder has a layer, and a layer its folders")
    func plan() {
        #expect(findings([:], layers: [["Low"], ["."]]).map(\.path) == ["Sources/House/Side"])
        #expect(findings([:], layers: [["Low", "Side", "Gone"], ["."]]).map(\.path) == ["Sources/House/Gone"])
    }
}
