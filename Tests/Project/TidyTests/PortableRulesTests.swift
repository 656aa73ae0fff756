import Foundation
import Testing

struct PortableRulesTests {
    @Test("the modules are read from the manifest")
    func modules() {
        let text = "var portable: Set<String> = [\n    \"A\", \"B\",\n]\nlet others = [\"C\"]"
        #expect(PortableRules.modules(inManifest: text) == ["A", "B"])
    }

    @Test("a portable module needs only portable ones and epoll")
    func dependencies() {
        let manifest = Manifest("library(\"A\", [\"B\", \"C\", \"CEpoll\"]), library(\"C\", [\"D\"])")
        let findings = PortableRules.findings(in: manifest, portable: ["A", "B"])
        #expect(findings.map(\.message) == ["A is portable and needs C, which is not"])
    }

    @Test(
        "an import of a Linux-only module is conditional",
        arguments: [
            ("import Glibc", 1), ("package import CEpoll", 1), ("import Foundation", 0),
            ("#if canImport(Darwin)\n    import Darwin\n#else\n    import Glibc\n#endif", 0),
            ("#if DEBUG\n    import Glibc\n#endif", 1),
            ("#if canImport(Darwin)\n    import Darwin\n#endif\nimport Glibc", 1),
        ])
    func imports(_ text: String, _ count: Int) {
        let file = SourceText(path: "Sources/G/A/File.swift", text)
        #expect(PortableRules.findings(in: file, portable: ["A"]).count == count)
        #expect(PortableRules.findings(in: file, portable: ["B"]).isEmpty)
    }

    @Test("portable modules would compile on other platforms, judged by their imports")
    func repository() throws {
        let repository = try Repository.current.get()
        let text = try String(contentsOf: Repository.root.appending(path: "Package.swift"), encoding: .utf8)
        let portable = PortableRules.modules(inManifest: text)
        #expect(portable.isSuperset(of: ["TrebuchetClient", "TrebuchetURLSession", "SharedModel"]))
        #expect(portable.isDisjoint(with: ["Trebuchet", "Networking", "WebSockets"]))
        var findings = PortableRules.findings(in: repository.manifest, portable: portable)
        for file in repository.files { findings += PortableRules.findings(in: file, portable: portable) }
        #expect(findings.map(\.description) == [])
    }
}
