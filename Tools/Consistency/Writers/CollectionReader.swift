import Trebuchet
import TrebuchetClient

/// Observes the result of a query, over all the views that its collection has while it moves.
struct CollectionReader {
    let name: String
    let client: TrebuchetClient
    var check: ResultCheck

    mutating func run(until isOver: () -> Bool) async {
        while !isOver() {
            do {
                let opened = try await client.call(
                    actor: Writing.collection, target: "open(_:)",
                    arguments: [Array(#"{"conditions":[],"order":[],"limit":20}"#.utf8)])
                let view = try Writing.decode(Writing.Opened.self, opened).view
                for try await value in client.observe(actor: view, stream: "observeResult") {
                    let result = try Writing.decode(Writing.Result.self, value)
                    if let text = check.take(result) { Output.finding("\(name): \(text)") }
                    if isOver() { break }
                }
            } catch let error as TrebuchetError where error.code == .actorNotFound || Writing.mayBeRepeated(error) {
                // The view may have ended with its owner: the query is opened again.
                try? await Task.sleep(for: .milliseconds(10))
            } catch {
                Output.finding("\(name): the query ended with \(error)")
                return
            }
        }
    }
}

/// Checks the results of a query for one reader. Pure.
struct ResultCheck {
    private let strictness: Strictness
    private var steps: StepsBack
    private var revision = 0
    private var sum = 0
    private var created: [String: Int] = [:]

    init(_ strictness: Strictness) {
        self.strictness = strictness
        steps = strictness.stepsBack
    }

    mutating func take(_ result: Writing.Result) -> String? {
        if strictness == .mayLose { return nil }
        defer { revision = max(revision, result.revision) }
        if result.revision < revision { return "the result went back from revision \(revision) to \(result.revision)" }
        if goesBack(result), steps.use() { (created, sum) = ([:], 0) }
        for document in result.documents {
            if document.revision > result.revision || document.created > document.revision {
                return "document \(document.id) of revision \(document.revision) in a result of \(result.revision)"
            }
            let before = created.updateValue(document.created, forKey: document.id)
            if let before, before != document.created {
                return
                    "document \(document.id) was created by write \(before), and then by \(document.created)"
            }
            guard document.id == Writing.shared, let new = document.fields.sum else { continue }
            defer { sum = new }
            if new < sum { return "the sum went back from \(sum) to \(new)" }
        }
        return nil
    }

    /// Returns whether a result lacks writes of earlier results.
    private func goesBack(_ result: Writing.Result) -> Bool {
        result.documents.contains {
            created[$0.id, default: $0.created] != $0.created
                || $0.id == Writing.shared && $0.fields.sum.map { $0 < sum } ?? false
        }
    }
}
