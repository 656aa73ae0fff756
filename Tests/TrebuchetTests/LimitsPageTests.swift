import Foundation
import Testing
import Trebuchet

@Suite struct LimitsPageTests {
    private func page(_ name: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: name), encoding: .utf8)
    }

    @Test("the page of the protocol names every setting of ServerLimits")
    func settings() throws {
        let page = try page("Docs/Protocol.md")
        let limits = try #require(page.range(of: "## Limits").map { page[$0.upperBound...] })
        let settings = Mirror(reflecting: ServerLimits()).children.compactMap(\.label)
        #expect(settings.count > 30)
        for setting in settings { #expect(limits.contains("`\(setting)`"), "\(setting) is not in the table") }
    }

    @Test("the page of pages names every setting of PageLimits")
    func pages() throws {
        let page = try page("Docs/Pages.md")
        for setting in Mirror(reflecting: PageLimits()).children.compactMap(\.label) {
            #expect(page.contains("`\(setting)`"), "\(setting) is not in the table")
        }
    }

    @Test("the page of the client has every option of it, with the default that it has")
    func options() throws {
        let rows = try page("Docs/Client.md").split(separator: "\n").map {
            $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        var options = Mirror(reflecting: TrebuchetClient.Options()).children.map { ($0.label ?? "", $0.value) }
        options.removeAll { $0.0 == "reconnect" }
        options += Mirror(reflecting: ReconnectPolicy()).children.map { ("reconnect.\($0.label ?? "")", $0.value) }
        #expect(options.count > 15)
        for (name, value) in options {
            let row = rows.first { $0.first == "`\(name)`" }
            #expect(row?.dropFirst().first == Self.text(value), "\(name)")
        }
    }

    /// A default as the table has it.
    private static func text(_ value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional { return mirror.children.first.map { text($0.value) } ?? "none" }
        switch value {
        case let bytes as Int where bytes >= 1 << 20 && bytes % (1 << 20) == 0: return "\(bytes >> 20) MiB"
        case let count as Int where count >= 1_000:
            return "\(count / 1_000)," + String("\(1_000 + count % 1_000)".dropFirst())
        case let count as Int: return "\(count)"
        case let ratio as Double: return "\(ratio)"
        case let time as Duration:
            let milliseconds = time / .milliseconds(1)
            return milliseconds < 1_000 ? "\(Int(milliseconds)) ms" : "\(Int(milliseconds / 1_000)) s"
        case let flag as Bool: return "\(flag)"
        case _ where mirror.displayStyle == .enum: return "`.\(value)`"
        default: return "none"
        }
    }
}
