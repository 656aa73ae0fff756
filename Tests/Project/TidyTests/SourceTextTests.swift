import Testing

struct SourceTextTests {
    @Test(
        "strings and comments are separated from code",
        arguments: [
            (#"let a = "word" // note"#, #"let a = "    ""#, "// note"),
            (#"a /* b /* c */ d */ e"#, "a                   e", "/* b /* c */ d */"),
            (#"print("x \(call("y")) z")"#, #"print("    call(" ")   ")"#, ""),
            (##"let r = #"a " \(b) \#(c)"# + d"##, ##"let r = #"              c  "# + d"##, ""),
            (#""a \" b" + c"#, #""      " + c"#, ""),
            (#"let url = "http://x""#, #"let url = "        ""#, ""),
        ])
    func parts(text: String, code: String, comment: String) {
        let source = SourceText(path: "a.swift", text)
        #expect(source.code.count == 1)
        #expect(source.code[0].filter { $0 != " " } == code.filter { $0 != " " })
        #expect(source.code[0].utf8.count == text.utf8.count)
        #expect(source.comments[0].filter { $0 != " " } == comment.filter { $0 != " " })
    }

    @Test("a string of several lines is blank on all of them")
    func multiline() {
        let source = SourceText(
            path: "a.swift",
            #"""
            let a = """
                import B "quoted"
                // not a comment \(value)
                """
            let c = 1
            """#)
        #expect(source.code.count == 5)
        #expect(!source.code.joined().contains("import"))
        #expect(source.code[2].contains("value"))
        #expect(source.comments.allSatisfy { !$0.contains("/") })
        #expect(source.code[4] == "let c = 1")
    }

    @Test("a file's module is that of its folder")
    func module() {
        #expect(SourceText(path: "Sources/State/Relays/Deep/A.swift", "").module == "Relays")
        #expect(SourceText(path: "Benchmarks/Deep/A.swift", "").module == "Benchmarks")
        #expect(SourceText(path: "Examples/a-b/Sources/AB/A.swift", "").module == "AB")
        #expect(SourceText(path: "Package.swift", "").module == nil)
    }
}
