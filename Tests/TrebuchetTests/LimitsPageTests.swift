import Foundation
import Testing
import Trebuchet

@Suite struct LimitsPageTests {
    @Test("the page of the protocol names every setting of ServerLimits")
    func settings() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "Docs/Protocol.md"), encoding: .utf8)
        let limits = try #require(page.range(of: "## Limits").map { page[$0.upperBound...] })
        let settings = Mirror(reflecting: ServerLimits()).children.compactMap(\.label)
        #expect(settings.count > 30)
        for setting in settings { #expect(limits.contains("`\(setting)`"), "\(setting) is not in the table") }
    }
}
