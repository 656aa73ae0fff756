import Foundation
import Testing

@Suite struct ConformanceTableTests {
    @Test("every test that Docs/Conformance.md names is there")
    func names() throws {
        let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Docs/Conformance.md")
        let named = try String(contentsOf: path, encoding: .utf8).matches(of: /`(\w+Tests)\.(\w+)`/)
        #expect(named.count > 50)
        let files = try Repository.current.get().files
        for name in named {
            let (suite, function) = (name.output.1, name.output.2)
            let file = files.first { $0.path.hasSuffix("/\(suite).swift") }
            #expect(file?.code.contains { $0.contains("func \(function)(") } == true, "\(suite).\(function)")
        }
    }
}
