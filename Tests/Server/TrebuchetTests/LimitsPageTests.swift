import DocumentedDefaults
import Foundation
import TestSupport
import Testing
import Trebuchet

@Suite struct LimitsPageTests {
    private func page(_ name: String) throws -> String {
        let root = packageRoot
        return try String(contentsOf: root.appending(path: name), encoding: .utf8)
    }

    @Test("the page of limits lists every setting of ServerLimits with its default")
    func settings() throws {
        let table = try DocumentedTable(
            of: ServerLimits(), in: "Reference/Limits.md",
            special: [
                "memory.total": "1/4 of the memory", "memory.perHost": "1/4 of `memory.total`",
                "memory.perPrincipal": "1/4 of `memory.total`", "pages": "see `PageLimits`",
            ])
        #expect(table.problems == [])
        #expect(table.count > 55)
    }

    private struct Sample {
        var bufferBytes = 3 << 10
        var people = 1_234_567
        var idleTime: Duration? = .seconds(600)
        var rate: RateLimit? = RateLimit(callsPerSecond: 0.1, burst: 2_000)
        var perName: [String: Int] = [:]
        var desks = Desks()

        struct Desks { var perFloor = 7 }
    }

    @Test(
        "a row that contradicts its setting is found",
        arguments: [
            ("| `people` | 1,234,567 | |", 0), ("| `people` | 1234567 | |", 1), ("| `others` | 1,234,567 | |", 2),
            ("| `people` | 1,234,567 | |\n| `people` | 1,234,567 | |", 1), ("", 1),
            ("| `people` / `others` | 1,234,567 / 1 | |", 1), ("| `people` / `others` | 1,234,567 | |", 2),
        ])
    func findings(row: String, count: Int) {
        let section = """
            | setting | default | at the limit |
            |---|---|---|
            | `bufferBytes` | 3 KiB | |
            | `idleTime` | 10 minutes | |
            | `rate` | 1 per 10 s, burst 2,000 | |
            | `perName` | none | |
            | `desks.perFloor` | 7 | |

            """
        let table = DocumentedTable(of: Sample(), in: Substring(section + row))
        #expect(table.problems.count == count, "\(table.problems)")
    }

    @Test(
        "the page of error codes has a row for each code",
        arguments: [
            ("`TrebuchetError`", "Actors/TrebuchetWire/ErrorCode.swift", "ErrorCode\\(rawValue: \"(\\w+)\""),
            ("Stream end reasons", "Actors/TrebuchetWire/ErrorCode.swift", "StreamEndReason\\(rawValue: \"(\\w+)\""),
            ("`TransportError`", "Transport/Transports/TransportError.swift", "Code\\(kind: \\.(\\w+)"),
            (
                "WebSocket close codes", "Transport/WebSockets/Frames/WebSocketCloseCode.swift",
                "Self\\(rawValue: (\\d+)"
            ),
            ("`StateStoreError`", "Actors/TrebuchetActors/Persistence/StateStoreError.swift", "Code\\(kind: \\.(\\w+)"),
            ("`ClusterEngineError`", "Cluster/TrebuchetCluster/ClusterEngineError.swift", "Code\\(kind: \\.(\\w+)"),
        ])
    func codes(heading: String, file: String, pattern: String) throws {
        let section = try page("Docs/Reference/ErrorCodes.md").split(separator: "\n## ").first { $0.hasPrefix(heading) }
        // A row may have several codes: "| 1005, 1006
        // … |".
        let heads = try #require(section).split(separator: "\n").compactMap { line in
            line.hasPrefix("|") ? line.split(separator: "|").first : nil
        }
        let rows = heads.flatMap { $0.split(separator: ",") }
            .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: "` ")) }
        let source = try page("Sources/\(file)")
        let code = try Regex(pattern)
        let codes = source.matches(of: code).compactMap { $0.output[1].substring.map(String.init) }
        #expect(codes.count >= 6)
        for code in codes { #expect(rows.contains(code), "\(code) has no row") }
    }

    @Test("the page of static files names every setting of PageLimits")
    func pages() throws {
        let page = try page("Docs/Reference/StaticFiles.md")
        for setting in Mirror(reflecting: PageLimits()).children.compactMap(\.label) {
            #expect(page.contains("`\(setting)`"), "\(setting) is not in the table")
        }
    }

    @Test("the client guide lists every option with its default")
    func options() throws {
        let rows = try page("Docs/Guides/Client.md").split(separator: "\n").map {
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

    /// A default in the form of the table.
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
