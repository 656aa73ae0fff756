/// Compares the reports of guests with each other. Pure.
struct ServicesClientChecks {
    /// By the names of rooms, who may be in them.
    let rooms: [String: [String]]
    /// Whether the server ran throughout, so that no event may be missing.
    let serverLivedOn: Bool

    /// Returns the conditions that must hold in the end and do not hold yet.
    func unsettled(_ reports: [ServicesClientReport], mood: Int) -> [String] {
        var problems: [String] = []
        let owned = reports.flatMap(\.ownNotes)
        let tags = Set(reports.flatMap(\.tags))
        let texts = Set(reports.compactMap(\.text))
        for report in reports {
            let name = report.name
            if report.isWaiting { problems.append("\(name) still has writes that wait") }
            let (shared, others) = (
                report.notes.first { $0.id == Note.shared }, report.notes.filter { $0.id != Note.shared }
            )
            problems += differences("\(name)'s notes", Set(others), Set(owned))
            if others.count != Set(others).count { problems.append("\(name) is shown a note twice") }
            if Set(shared?.tags ?? []) != tags || shared?.tags.count != tags.count {
                let missing = tags.subtracting(shared?.tags ?? []).sorted()
                let more = Set(shared?.tags ?? []).subtracting(tags).sorted()
                problems.append("tags that \(name) is shown: \(missing) missing, \(more) too many")
            }
            if let text = shared?.text, !text.isEmpty || !texts.isEmpty, !texts.contains(text) {
                problems.append("the shared text of \(name) is not the last one of any guest: '\(text)'")
            }
            problems += differences("\(name)'s diary", Set(report.diary), Set(report.ownPages))
            for (room, shown) in report.rooms {
                let others = (rooms[room] ?? []).filter { $0 != name }
                    .map { ConsistencyPresence(name: $0, room: room, mood: "\(mood)") }
                problems += differences("the members of room \(room) for \(name)", Set(shown.peers), Set(others))
                if shown.peers.count != Set(shown.peers).count {
                    problems.append("\(name) sees a member twice in \(room)")
                }
                for other in reports where other.name != name {
                    for label in other.rooms[room]?.acknowledged ?? [] {
                        guard Label(label)?.number == mood, !shown.events.contains(label) else { continue }
                        problems.append("\(name) is not shown event \(label)")
                    }
                }
            }
        }
        return problems
    }

    private func differences<Value: Hashable>(_ what: String, _ shown: Set<Value>, _ wanted: Set<Value>) -> [String] {
        guard shown != wanted else { return [] }
        return ["\(what): missing \(Array(wanted.subtracting(shown))), too many \(Array(shown.subtracting(wanted)))"]
    }

    /// Returns violations of conditions that must always hold.
    func findings(_ reports: [ServicesClientReport], _ outcome: inout ServicesOutcome) -> [String] {
        var findings: [String] = []
        for report in reports {
            let name = report.name
            findings += report.failures.map { "a write of \(name) has failed: \($0)" }
            findings += report.spied.map { "\(name) had access to private data: \($0)" }
            if report.acknowledged != report.writes {
                findings.append(
                    "\(name) has made \(report.writes) writes, of which \(report.acknowledged) are acknowledged")
            }
            for writer in report.writers where writer != name {
                findings.append("\(name) was shown a page of \(writer)'s diary")
            }
            for (room, shown) in report.rooms {
                let members = (rooms[room] ?? []).filter { $0 != name }
                for seen in shown.seen where !members.contains(where: { seen == "\($0)@\(room)" }) {
                    findings.append("\(name) was shown \(seen) in room \(room)")
                }
                findings += events(shown.events, of: name, in: room, members, reports, &outcome)
            }
            outcome.writes += report.acknowledged
            outcome.attempts += report.attempts
            outcome.acknowledged += report.rooms.values.reduce(0) { $0 + $1.acknowledged.count }
            outcome.unknown += report.rooms.values.reduce(0) { $0 + $1.unknown.count }
            outcome.refused += report.rooms.values.reduce(0) { $0 + $1.refused.count }
        }
        return findings
    }

    private func events(
        _ shown: [String], of name: String, in room: String, _ members: [String], _ reports: [ServicesClientReport],
        _ outcome: inout ServicesOutcome
    ) -> [String] {
        var findings: [String] = []
        var last: [String: Int] = [:]
        for text in shown {
            guard let label = Label(text), label.room == room, members.contains(label.name) else {
                findings.append("\(name) was shown '\(text)' in room \(room)")
                continue
            }
            if let before = last[label.name], before >= label.number {
                findings.append("\(name) was shown \(text) behind number \(before)")
            }
            last[label.name] = label.number
        }
        outcome.shown += shown.count
        for publisher in reports where members.contains(publisher.name) {
            guard let own = publisher.rooms[room] else { continue }
            let received = Set(shown.filter { Label($0)?.name == publisher.name })
            for label in received.intersection(own.refused) {
                findings.append("\(name) was shown \(label), which was refused")
            }
            let made = Set(own.acknowledged + own.unknown + own.refused)
            for label in received.subtracting(made) {
                findings.append("\(name) received \(label), which no guest published")
            }
            outcome.shownUnknown += received.intersection(own.unknown).count
            let missing = Set(own.acknowledged).subtracting(received)
            outcome.lost += missing.count
            guard serverLivedOn else { continue }
            for label in missing { findings.append("\(name) was not shown \(label), which was acknowledged") }
        }
        return findings
    }
}
