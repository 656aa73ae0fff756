import TestSupport
import Trebuchet
import TrebuchetClient

/// The collection and the room of a seed in the end.
extension Judge {
    /// Ends the writers, and compares acknowledged writes with the collection and the room.
    func finishWriting() async throws {
        tellWriters("finish")
        try await wait("for the writers to finish") { history.now.hasFinished }
        var problems: [String] = []
        do {
            try await wait("for the room to settle") {
                let count = history.now.reportCount
                tellWriters("report")
                try await wait("for reports of the room") { history.now.reportCount > count }
                problems = WriterJudging(history.now, revisionsDiffer: true, mayBeLost: lossCheck).unsettled()
                if !problems.isEmpty { try await Task.sleep(for: .milliseconds(50)) }
                return problems.isEmpty
            }
        } catch let halt as Halt {
            throw Halt(description: ([halt.description] + problems).joined(separator: "\n    "))
        }
        let contents = history.now
        var judging = WriterJudging(contents, revisionsDiffer: strictness != .mayLose, mayBeLost: lossCheck)
        outcome.findings += judging.findings(try await readCollection()) + judging.roomFindings()
        outcome.lost += judging.lost
        outcome.shownAgain += judging.shownAgain
        outcome.missed += judging.missed
        outcome.roomRestarts += contents.reports.reduce(0) { max($0, $1.restarts) }
        if strictness == .ordered, outcome.roomRestarts > 0 { found("the room has ended during an ordered change") }
        outcome.mutations = contents.commits.count
        outcome.published = contents.published.count
    }

    func tellWriters(_ line: String) { writers?.tell(line) }

    /// Nil where nothing may be lost.
    private var lossCheck: ((ContinuousClock.Instant) -> Bool)? {
        guard network?.plan.mayLose == true else { return nil }
        return { [losses] time in losses.contains { $0.contains(time) } }
    }

    private func readCollection() async throws -> Writing.Result {
        let client = try await connectedClient()
        var page = Writing.Result(revision: 0, hasMore: false, documents: [])
        try await wait("for the collection to be read") {
            do {
                let answer = try await client.call(
                    actor: Writing.collection, target: "get(_:)",
                    arguments: [Array(#"{"conditions":[],"order":[],"limit":10000}"#.utf8)])
                page = try Writing.decode(Writing.Result.self, answer)
                return true
            } catch  where Writing.mayBeRepeated(error) {
                return false
            }
        }
        await client.close()
        return page
    }
}
