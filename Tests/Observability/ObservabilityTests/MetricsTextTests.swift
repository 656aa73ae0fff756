import Foundation
import TestSupport
import Testing

@testable import Trebuchet
@testable import TrebuchetNodes
@testable import TrebuchetActors

/// Metrics in the text format of Prometheus.
@Suite(.timeLimit(.minutes(5))) struct MetricsTextTests {
    @Test("numbers, labels and durations are written in the format")
    func text() {
        var text = MetricsText()
        text.appendMetric("a_total", .counter, "What.", 3)
        text.appendMetric("b", .gauge, "Half.", 0.5)
        text.appendMetric("c", .gauge, "Two.", [(["x": "1", "y": "a\"b\\c\nd"], 1), (["x": "2", "y": ""], 1e16)])
        text.appendMetric("none", .gauge, "None.", [(MetricsText.Labels, Double)]())
        let counts = ShardMetrics()
        counts.count(.storeWrites, duration: 1)
        counts.count(.storeWrites, duration: 60_000)
        text.appendHistograms("d_seconds", "Times.", [([:], counts.sum.times(of: .storeWrites))])
        let lines = text.text.split(separator: "\n").map(String.init)
        #expect(
            lines.prefix(8) == [
                "# HELP a_total What.", "# TYPE a_total counter", "a_total 3", "# HELP b Half.", "# TYPE b gauge",
                "b 0.5",
                "# HELP c Two.", "# TYPE c gauge",
            ])
        #expect(lines[8] == #"c{x="1",y="a\"b\\c\nd"} 1"#)
        #expect(lines[9] == #"c{x="2",y=""} 1e+16"#)
        #expect(
            lines[10...13] == [
                "# HELP d_seconds Times.", "# TYPE d_seconds histogram", #"d_seconds_bucket{le="5e-05"} 1"#,
                #"d_seconds_bucket{le="0.0001"} 2"#,
            ])
        #expect(
            lines.suffix(3) == [#"d_seconds_bucket{le="+Inf"} 2"#, "d_seconds_sum 6.0001e-05", "d_seconds_count 2"])
    }

    @Test("two types with one name are one series, and a method without calls has none")
    func merged() {
        let counts = ShardMetrics()
        counts.count(row: 10, duration: 1)
        counts.count(row: 11, duration: 2)
        var list = MetricList()
        list.counts.merge(counts.sum)
        let rows = [(10, "a()"), (11, "a()"), (12, "b()")].map {
            MethodHistogramIndex.Row(number: $0.0, type: "T", method: $0.1)
        }
        let text = list.text(rows)
        #expect(text.contains("\ntrebuchet_call_duration_seconds_count{type=\"T\",method=\"a()\"} 2\n"))
        #expect(!text.contains("b()"))
        let names = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map {
            $0.split(separator: " ").dropLast()
        }
        #expect(Set(names).count == names.count, "each series is written once")
    }

    @Test("the system's metrics of this process are present")
    func process() throws {
        let process = try #require(ProcessMetrics.read())
        #expect(process.processorSeconds > 0 && process.residentBytes > 1 << 20 && process.threads > 1)
        #expect(process.openFiles > 2 && process.maximumOpenFiles.map { $0 > process.openFiles } ?? true)
        let age = Date().timeIntervalSince1970 - process.started
        #expect((-2...86_400).contains(age), "\(age)")
    }

    @Test(
        "promtool reports no problem, with all metrics present",
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool"),
            "there is no promtool: scripts/bootstrap --prometheus"))
    func promtool() async throws {
        let counts = ShardMetrics()
        for figure in Metric.allCases { counts.count(figure) }
        for work in TimedOperation.allCases { counts.count(work, duration: 1_000_000) }
        counts.count(row: 20, duration: 5)
        counts.countRefusal(by: "calls.perConnection")
        var list = MetricList()
        list.counts.merge(counts.sum)
        list.refusals = [401: 2, 503: 1]
        list.now.reactors = [MetricList.Reactor(name: "reactor-0")]
        list.now.router = RouterMetric.ofNode(
            slots: 0, liveNodes: 0, isStoreResponding: true, acquired: 0, lost: 0)
        let text = list.text([MethodHistogramIndex.Row(number: 20, type: "Demo.List<\"\n\\>", method: "add(_:)")])
        let file = NSTemporaryDirectory() + "metrics-\(UUID())"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        func check() async throws -> ChildProcess.Outcome {
            try await ChildProcess("/bin/sh", ["-c", "promtool check metrics < \(file)"], error: .captured).finish()
        }
        let outcome = try await check()
        #expect(outcome.status == 0 && outcome.output.isEmpty && outcome.error.isEmpty, "\(outcome)")
        // This change makes it report one.
        try Data((text + "trebuchet_ready{ 2\n").utf8).write(to: URL(fileURLWithPath: file))
        #expect(try await check().status != 0)
    }
}
