import Foundation
import Synchronization

/// The reports of the writers.
final class WriteHistory: Sendable {
    struct Commit {
        let writer: Int
        let number: Int
        let revision: Int
        let time: ContinuousClock.Instant
    }

    struct Contents {
        var commits: [Commit] = []
        /// By the writer, the number of its last mutation.
        var written: [Int: Int] = [:]
        /// Events by how publishing them ended, with the time.
        var published: [(label: String, time: ContinuousClock.Instant)] = []
        var uncertain: Set<String> = []
        var unpublished: Set<String> = []
        var reports: [MemberReport] = []
        var reportCount = 0
        var findings: [String] = []
        /// The current operation of each writer, after a request of the judge.
        var status: [String] = []
        var hasJoined = false
        var hasFinished = false
        /// Unexpected lines.
        var strange: [String] = []
    }

    private let contents = Mutex(Contents())

    var now: Contents { contents.withLock { $0 } }

    func take(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 1)
        let rest = words.count > 1 ? String(words[1]) : ""
        let numbers = rest.split(separator: " ").compactMap { Int($0) }
        contents.withLock { contents in
            switch words.first {
            case "committed" where numbers.count == 3:
                contents.commits.append(
                    Commit(writer: numbers[0], number: numbers[1], revision: numbers[2], time: .now))
            case "wrote" where numbers.count == 2: contents.written[numbers[0]] = numbers[1]
            case "published": contents.published.append((rest, .now))
            case "uncertain": contents.uncertain.insert(rest)
            case "unpublished": contents.unpublished.insert(rest)
            case "last": break
            case "status": contents.status.append(rest)
            case "finding": contents.findings.append(rest)
            case "joined": contents.hasJoined = true
            case "finished": contents.hasFinished = true
            case "reports":
                do {
                    contents.reports = try JSONDecoder().decode([MemberReport].self, from: Data(rest.utf8))
                    contents.reportCount += 1
                } catch {
                    contents.strange.append("\(error), of \(line)")
                }
            default: contents.strange.append(line)
            }
        }
    }
}
