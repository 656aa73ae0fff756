import Foundation
import TestSupport
import Testing

@testable import Trebuchet
@testable import TrebuchetNodes
@testable import TrebuchetActors

/// Compares Docs/Reference/Metrics.md with the metrics of a server.
@Suite struct MetricsPageTests {
    private struct DocumentedMetric: Equatable {
        var type = ""
        var labels: Set<String> = []
    }

    /// The text of a server in which every metric has a sample.
    private static var text: String {
        let counts = ShardMetrics()
        for figure in Metric.allCases { counts.count(figure) }
        for work in TimedOperation.allCases { counts.count(work, duration: 1_000_000) }
        counts.count(row: 20, duration: 5)
        counts.countRefusal(by: "calls.perConnection")
        var list = MetricList()
        list.counts.merge(counts.sum)
        list.refusals = [401: 2]
        list.httpRequests = [204: 1]
        list.now.reactors = [MetricList.Reactor(name: "reactor-0")]
        list.now.store = StoreFileUsage(bytes: 1, freeBytes: 1)
        list.now.certificates = [("clients", 1)]
        list.now.router = RouterMetric.ofNode(
            slots: 0, liveNodes: 0, isStoreResponding: true, acquired: 0, lost: 0)
        let process = ProcessMetrics(
            processorSeconds: 1, residentBytes: 1, virtualBytes: 1, openFiles: 1, maximumOpenFiles: 1, started: 1,
            threads: 1)
        return list.text([MethodHistogramIndex.Row(number: 20, type: "Demo.List", method: "add(_:)")], process: process)
    }

    @Test("the page has the name, the type and the labels of every metric, and of no other")
    func metrics() throws {
        let root = packageRoot
        let page = try String(contentsOf: root.appending(path: "Docs/Reference/Metrics.md"), encoding: .utf8)
        var listed: [String: DocumentedMetric] = [:]
        var meanings: [String: String] = [:]
        for line in page.split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let name = try #require(cells.first).replacingOccurrences(of: "`", with: "")
            #expect(cells.count == 4, "\(name)")
            #expect(listed[name] == nil, "\(name) is listed twice")
            let labels = cells[2].replacingOccurrences(of: "`", with: "").components(separatedBy: ", ")
            listed[name] = DocumentedMetric(type: cells[1], labels: Set(labels.filter { !$0.isEmpty }))
            meanings[name] = cells[3]
        }

        var actual: [String: DocumentedMetric] = [:]
        var name = ""
        for line in Self.text.split(separator: "\n") {
            if line.hasPrefix("# TYPE ") {
                let words = line.split(separator: " ")
                name = String(words[2])
                actual[name] = DocumentedMetric(type: String(words[3]))
            } else if !line.hasPrefix("#") {
                for match in line.matches(of: /(\w+)="([^"]*)"/) where match.output.1 != "le" {
                    actual[name]?.labels.insert(String(match.output.1))
                    // The page explains each value of these, in the row or below the table.
                    guard ["cause", "outcome", "kind"].contains(match.output.1) else { continue }
                    #expect(page.contains("`\(match.output.2)`"), "\(name): \(match.output.2)")
                }
            }
        }
        #expect(actual.count > 40)
        for (name, metric) in actual { #expect(listed[name] == metric, "\(name)") }
        for name in listed.keys { #expect(actual[name] != nil, "\(name) is no metric of a server") }
        for (name, meaning) in meanings { #expect(!meaning.isEmpty, "\(name)") }
    }
}
