import Foundation
import TestSupport

/// Compares the defaults in the comments of a type's settings ("Default 10 s.") with the actual ones.
package struct DocumentedDefaults {
    /// Settings whose documented default is wrong or not understood.
    package private(set) var wrong: [String] = []
    /// The compared settings.
    package private(set) var compared: [String] = []

    /// - Parameters:
    ///   - value: made by the type's initialiser without arguments.
    ///   - file: that declares it, below Sources.
    package init(of value: Any, in file: String) throws {
        let sources = packageRoot.appending(path: "Sources")
        let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
        var comments: [String: [String: String]] = [:]
        for setting in DocumentedSetting.all(of: value) {
            let said = comments[setting.type] ?? Self.comments(in: text, type: setting.type)
            comments[setting.type] = said
            guard let match = said[setting.name]?.firstMatch(of: /Default ([^.;:]*(\.\d[^.;:]*)?)/) else { continue }
            let words = String(match.1)
            guard words.contains(where: \.isNumber) || words == "true" || words == "false" else { continue }
            compared.append(setting.path)
            if !Self.isSame(setting.value, words) {
                wrong.append("\(type(of: value)).\(setting.path) is \(setting.value), not \(words)")
            }
        }
    }

    /// The comments of a type's members, each as one line.
    private static func comments(in text: String, type: String) -> [String: String] {
        var comments: [String: String] = [:]
        var comment = ""
        var isInType = false
        for line in text.split(separator: "\n") {
            let words = line.drop { $0 == " " }
            if words.contains("struct \(type)") { isInType = true }
            if words.hasPrefix("///") {
                comment += words.dropFirst(3)
            } else {
                if isInType, let match = words.firstMatch(of: /\bvar (\w+)/), comments[String(match.1)] == nil {
                    comments[String(match.1)] = comment
                }
                comment = ""
            }
        }
        return comments
    }

    private static func isSame(_ value: Any, _ words: String) -> Bool {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional { return mirror.children.first.map { isSame($0.value, words) } ?? false }
        switch value {
        case let value as Bool: return String(value) == words
        case let value as Int: return Double(value) == amount(words, units: bytes)
        case let value as Double: return value == amount(words, units: [:])
        case let value as Duration: return value == amount(words, units: seconds).map { .milliseconds(Int($0 * 1_000)) }
        default:
            let parts = Dictionary(uniqueKeysWithValues: mirror.children.map { ($0.label ?? "", $0.value) })
            guard let rate = parts["callsPerSecond"] as? Double, let burst = parts["burst"] as? Int else {
                return false
            }
            return isSame(rate, burst, words)
        }
    }

    /// "50 a second, 200 at once", or "5 at once, then one in 5 minutes".
    private static func isSame(_ rate: Double, _ burst: Int, _ words: String) -> Bool {
        guard let atOnce = words.firstMatch(of: /([\d,]+) at once/).flatMap({ amount(String($0.1), units: [:]) }) else {
            return false
        }
        let perSecond: Double? =
            if let match = words.firstMatch(of: /([\d,]+) a second/) {
                amount(String(match.1), units: [:])
            } else if let match = words.firstMatch(of: /one in (.*)/) {
                amount(String(match.1), units: seconds).map { 1 / $0 }
            } else {
                words.contains("one a second") ? 1 : nil
            }
        return Double(burst) == atOnce && rate == perSecond
    }

    private static let bytes: [String: Double] = ["KiB": 1_024, "MiB": 1_048_576, "GiB": 1_073_741_824]
    private static let seconds: [String: Double] = [
        "ms": 0.001, "s": 1, "second": 1, "seconds": 1, "minute": 60, "minutes": 60, "hour": 3_600, "hours": 3_600,
        "days": 86_400,
    ]

    private static func amount(_ words: String, units: [String: Double]) -> Double? {
        guard let match = words.firstMatch(of: /^([\d,.]+)(?: (\w+))?/),
            let number = Double(match.1.filter { $0 != "," })
        else { return nil }
        return match.2.map { units[String($0)] ?? 1 }.map { number * $0 } ?? number
    }
}
