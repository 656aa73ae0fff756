/// Compares the responses of writers with the final data. Pure.
struct WriterJudging {
    let contents: WriteHistory.Contents
    /// Returns whether a write that was acknowledged at a time may be lost; nil if no write may be.
    let mayBeLost: ((ContinuousClock.Instant) -> Bool)?
    /// Whether no two mutations share a revision, even if one was lost, as after a restore.
    let revisionsDiffer: Bool
    private(set) var lost = 0
    /// Events that a member received again because the room had lost its history.
    private(set) var shownAgain = 0
    /// Acknowledged events that a member was not shown, and was told so: the room had ended or had discarded them.
    private(set) var missed = 0

    init(
        _ contents: WriteHistory.Contents, revisionsDiffer: Bool, mayBeLost: ((ContinuousClock.Instant) -> Bool)?
    ) {
        (self.contents, self.revisionsDiffer, self.mayBeLost) = (contents, revisionsDiffer, mayBeLost)
    }

    private mutating func isLost(_ time: ContinuousClock.Instant) -> Bool {
        guard mayBeLost?(time) == true else { return false }
        lost += 1
        return true
    }

    // MARK: The collection

    mutating func findings(_ result: Writing.Result) -> [String] {
        var findings: [String] = []
        if result.hasMore == true { findings.append("the collection has more documents than one page") }
        let documents = Dictionary(result.documents.map { ($0.id, $0) }) { first, _ in first }
        if documents.count != result.documents.count { findings.append("a document is in the collection twice") }
        var owners: [Int: WriteHistory.Commit] = [:]
        for commit in contents.commits {
            let name = "mutation \(commit.number) of writer \(commit.writer)"
            if let other = owners.updateValue(commit, forKey: commit.revision), revisionsDiffer {
                findings.append(
                    "\(name) was answered revision \(commit.revision), as mutation \(other.number) of writer \(other.writer) was"
                )
            }
            guard !Writing.isIncrement(commit.number) else { continue }
            guard let document = documents[Writing.document(commit.writer, commit.number)] else {
                if !isLost(commit.time) {
                    findings.append("\(name) was answered revision \(commit.revision), and its document is not there")
                }
                continue
            }
            if document.created != commit.revision, mayBeLost?(commit.time) != true {
                findings.append(
                    "\(name) was answered revision \(commit.revision), and has made revision \(document.created)"
                )
            }
        }
        for id in documents.keys where id != Writing.shared {
            let parts = id.split(separator: ".").compactMap { Int($0) }
            if parts.count != 2 || parts[1] > contents.written[parts[0]] ?? 0 {
                findings.append("no writer has created document \(id)")
            }
        }
        return findings + sumFindings(documents[Writing.shared]?.fields.sum ?? 0)
    }

    private mutating func sumFindings(_ sum: Int) -> [String] {
        let asked = contents.written.values.reduce(0) { $0 + $1 / 2 }
        var least = asked
        if mayBeLost != nil {
            least = 0
            for commit in contents.commits where Writing.isIncrement(commit.number) {
                if !isLost(commit.time) { least += 1 }
            }
        }
        guard sum < least || sum > asked else { return [] }
        return ["\(asked) increments were requested, of which \(least) are acknowledged; the sum is \(sum)"]
    }

    // MARK: The room

    /// Returns the conditions that do not hold yet.
    func unsettled() -> [String] {
        let names = contents.reports.map(\.name)
        var problems: [String] = []
        for report in contents.reports {
            let others = Set(names).subtracting([report.name])
            let shown = report.peers.map { "\($0.name) \($0.mood)" }.sorted()
            let wanted = others.map { "\($0) done" }.sorted()
            if shown != wanted { problems.append("member \(report.name) sees \(shown) and not \(wanted)") }
            let last = contents.published.filter { Label($0.label).map { $0.number > 10_000 } ?? false }.map(\.label)
            for label in last where Label(label)?.name != report.name && !report.events.contains(label) {
                problems.append("member \(report.name) is not shown \(label)")
            }
        }
        return problems
    }

    mutating func roomFindings() -> [String] {
        var findings: [String] = []
        for report in contents.reports {
            var last: [String: Int] = [:]
            for text in report.events {
                guard let label = Label(text), label.room == Writing.room, label.name != report.name else {
                    findings.append("member \(report.name) was shown '\(text)'")
                    continue
                }
                if let before = last[label.name], before >= label.number, !revisionsDiffer {
                    shownAgain += 1
                } else if let before = last[label.name], before >= label.number {
                    findings.append("member \(report.name) was shown \(text) behind number \(before)")
                }
                last[label.name] = label.number
                if contents.unpublished.contains(text), mayBeLost == nil {
                    findings.append("member \(report.name) was shown \(text), which was refused")
                }
            }
            let shown = Set(report.events)
            var missing: [String] = []
            for (label, time) in contents.published where Label(label)?.name != report.name {
                if !shown.contains(label), !isLost(time) { missing.append(label) }
            }
            guard missing.count > report.missed, report.restarts == 0 else {
                missed += missing.count
                continue
            }
            findings += missing.map {
                "member \(report.name) was not shown \($0), which was acknowledged; its topic says: \(report.error ?? "nothing")"
            }
        }
        return findings
    }
}
