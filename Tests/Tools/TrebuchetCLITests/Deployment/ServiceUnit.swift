import Foundation
import TestSupport

/// The packaged unit, executed by a test as systemd would.
struct ServiceUnit {
    let text: String
    /// `KillSignal` and so on; the last value of a repeated setting.
    private let settings: [String: String]

    init(_ text: String) {
        self.text = text
        var settings: [String: String] = [:]
        let joined = text.replacingOccurrences(of: "\\\n", with: " ")
        for line in joined.split(separator: "\n") where !line.hasPrefix("#") && !line.hasPrefix("[") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            settings[String(line[..<equals])] = String(line[line.index(after: equals)...])
        }
        self.settings = settings
    }

    /// The packaged unit with the options of the page, temporary files, and the example actors, which the tests call.
    static func ofPage(data: String, rules: String) throws -> ServiceUnit {
        try #"{"collections":{"*":{"create":"signed-in"}}}"#.write(toFile: rules, atomically: true, encoding: .utf8)
        let unit = packageRoot.appending(path: "Packaging/trebuchet@.service")
        // `TREBUCHET_OPTIONS="…"`, in several lines.
        let file = try DocumentedPage("Guides/Deployment.md").blocks("sh").first ?? ""
        let parts = file.replacingOccurrences(of: "\\\n", with: " ").split(separator: "\"")
        let options = parts.count > 1 ? String(parts[1]) : ""
        let text = try String(contentsOf: unit, encoding: .utf8)
        return ServiceUnit(
            try text.filledIn([
                "/usr/bin/trebuchet": ServeProcess.tool, "$TREBUCHET_OPTIONS": options,
                "/var/lib/trebuchet/trebuchet.db": data, "/etc/trebuchet/rules.json": "\(rules) --examples",
            ]))
    }

    subscript(setting: String) -> String? { settings[setting] }

    /// Runs `ExecStart` for an instance.
    func start(instance: String, error: ChildProcess.ErrorOutput) throws -> ChildProcess {
        let words = (self["ExecStart"] ?? "").replacingOccurrences(of: "%i", with: instance)
            .split(separator: " ").map(String.init)
        return try ChildProcess(words.first ?? "", Array(words.dropFirst()), error: error)
    }
}
