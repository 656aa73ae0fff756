import Foundation
import Synchronization

/// The reports of guests.
final class ServicesClientRecord: Sendable {
    struct Contents {
        var joined: Set<String> = []
        var played: Set<String> = []
        var rounds = 0
        /// The newest of each, and how many there were.
        var reports: [String: (report: ServicesClientReport, count: Int)] = [:]
        /// Unexpected lines.
        var strange: [String] = []
    }

    private let contents = Mutex(Contents())

    var now: Contents { contents.withLock { $0 } }

    /// Returns whether each guest has sent more reports than the counts.
    func haveReported(_ names: [String], since counts: [String: Int]) -> Bool {
        let reports = now.reports
        return names.allSatisfy { reports[$0]?.count ?? 0 > counts[$0] ?? 0 }
    }

    func take(_ line: String, from name: String) {
        let words = line.split(separator: " ", maxSplits: 1)
        contents.withLock { contents in
            switch words.first {
            case "joined": contents.joined.insert(name)
            case "round": contents.rounds += 1
            case "played": contents.played.insert(name)
            case "report" where words.count == 2:
                do {
                    let report = try JSONDecoder().decode(ServicesClientReport.self, from: Data(words[1].utf8))
                    contents.reports[name] = (report, (contents.reports[name]?.count ?? 0) + 1)
                } catch {
                    contents.strange.append("\(name): \(error), of \(line)")
                }
            default: contents.strange.append("\(name): \(line)")
            }
        }
    }
}
