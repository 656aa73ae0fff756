import Testing

struct DeadFilesTests {
    @Test(
        "a file is dead when no other file names its declarations",
        arguments: [
            ("struct Lonely {}", true),
            ("public struct Used { struct Inner {} }", false),
            ("@MainActor public final class Lonely {\n    func used() {}\n}", true),
            ("extension String {\n    func used() {}\n}", false),
            ("extension String {\n    var lonely: Int { 1 }\n}", true),
            ("extension String: Lonely {}", false),
            ("extension String {\n    init(lonely: Int) {}\n}", false),
            ("#if os(Linux)\n    func used() {}\n#endif", false),
            ("private let lonely = 1 // Used", true),
            ("func + (a: A, b: B) {}", false),
            ("@main struct Lonely {}", false),
            ("import Foundation", true),
        ])
    func deadOrAlive(text: String, isDead: Bool) {
        let files = [
            SourceText(path: "Sources/G/A/A.swift", text),
            SourceText(path: "Tests/Base/ATests/B.swift", #"Used().x(); "\(used())"; "lonely""#),
        ]
        #expect(DeadFiles.findings(in: files).map(\.path) == (isDead ? ["Sources/G/A/A.swift"] : []))
    }

    @Test("an entry file is used without being named")
    func entry() {
        #expect(DeadFiles.findings(in: [SourceText(path: "Sources/G/A/main.swift", "run()")]).isEmpty)
    }
}
