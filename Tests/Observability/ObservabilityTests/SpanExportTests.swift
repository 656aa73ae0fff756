import Foundation
import Platform
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetTelemetry

/// The export of spans to a collector, with all its failures.
@Suite(.timeLimit(.minutes(5))) struct SpanExportTests {
    /// The log lines of an exporter with short timeouts.
    private final class ExporterLog: Sendable {
        private let texts = Mutex<[String]>([])

        var lines: [String] { texts.withLock { $0 } }

        func exporter(_ url: String, _ change: (inout OTLPExporter.Timeouts) -> Void = { _ in }) throws -> OTLPExporter
        {
            var timeouts = OTLPExporter.Timeouts()
            (timeouts.gathering, timeouts.afterFailure) = (.milliseconds(10), .milliseconds(20))
            change(&timeouts)
            return try OTLPExporter(
                url: url, timeouts: timeouts, log: ConsoleLog { line in self.texts.withLock { $0.append(line) } })
        }

        /// The number of spans that its lines count as lost.
        var count: Int { lines.reduce(0) { $0 + (Int($1.prefix { $0.isNumber }) ?? 0) } }
    }

    private var span: TraceSpan {
        TraceSpan(.storeWrite(actor: "a"), TraceContext(), of: nil, beganAt: 1, duration: 1)
    }

    @Test("a collector receives the spans as OTLP in JSON")
    func otlp() async throws {
        let collector = try Collector()
        defer { collector.stop() }
        let exporter = try OTLPExporter(
            url: collector.url, service: "a \"service\"", instance: "n1", log: ConsoleLog { _ in })
        try await withTraced(exporter) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            try await TraceContext.with(TraceContext(TraceTests.traceparent)) {
                _ = try await shelf.put("a")
                await #expect(throws: TrebuchetError.self) { try await shelf.refuse("b") }
            }
        }
        await exporter.flush()
        let counts = exporter.counts
        #expect(counts.sent == 2 && counts.dropped == 0)
        #expect(collector.requests.allSatisfy { $0.hasPrefix("POST /v1/traces HTTP/1.1\r\n") })
        #expect(collector.requests.allSatisfy { $0.contains("\r\nContent-Type: application/json\r\n") })
        let names = ["service.name": "a \"service\"", "service.instance.id": "n1"]
        #expect(!collector.resources.isEmpty && collector.resources.allSatisfy { Collector.attributes($0) == names })
        let spans = collector.spans
        #expect(spans.count == 2)
        let (put, refuse) = (spans.first, spans.last)
        #expect(put?["traceId"] as? String == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(put?["parentSpanId"] as? String == "00f067aa0ba902b7")
        #expect((put?["spanId"] as? String)?.count == 16)
        #expect(put?["name"] as? String == "ObservabilityTests.Shelf/put(_:)" && put?["kind"] as? Int == 2)
        let began = UInt64(put?["startTimeUnixNano"] as? String ?? "") ?? 0
        let ended = UInt64(put?["endTimeUnixNano"] as? String ?? "") ?? 0
        let now = UInt64(Date().timeIntervalSince1970 * 1e9)
        #expect(began < ended && ended <= now + 1_000_000_000 && began > now - 300_000_000_000)
        #expect(Collector.attributes(put)["rpc.system"] == "trebuchet" && put?["status"] == nil)
        #expect(Collector.attributes(refuse)["error.type"] == "application")
        #expect((refuse?["status"] as? [String: Any])?["code"] as? Int == 2)
    }

    @Test("spans over the queue limit are dropped, counted and logged, and the others are sent")
    func slow() async throws {
        let gate = ThreadSemaphore()
        let collector = try Collector(gate: gate)
        defer { collector.stop() }
        let said = ExporterLog()
        let exporter = try said.exporter(collector.url)
        for _ in 0..<10_000 { exporter.export(span) }
        let left = exporter.counts.dropped
        // 4,096 spans wait, and those of one batch may be in transit.
        #expect((10_000 - 4_096 - 512...10_000 - 4_096).contains(left), "\(left)")
        for _ in 0..<20 { gate.signal() }
        await exporter.flush(timeout: .seconds(60))
        let counts = exporter.counts
        #expect(counts.sent + counts.dropped == 10_000 && counts.dropped == left)
        #expect(collector.spans.count == counts.sent && said.count == left)
        #expect(said.lines.allSatisfy { $0.hasSuffix("spans were recorded faster than the collector accepts them") })
    }

    @Test("an unavailable or refusing collector costs the spans, which is logged", arguments: [true, false])
    func away(isAway: Bool) async throws {
        let collector = try Collector(.answers(503))
        if isAway { collector.stop() }
        defer { if !isAway { collector.stop() } }
        let said = ExporterLog()
        let exporter = try said.exporter(collector.url)
        try await withTraced(exporter, sampling: 1) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            for number in 1...2_000 { #expect(try await shelf.put("a") == number) }
        }
        await exporter.flush(timeout: .seconds(60))
        let counts = exporter.counts
        #expect(counts.sent == 0 && counts.dropped == 2_000 && said.count == 2_000)
        #expect(said.lines.allSatisfy { $0.contains(" not sent to http://127.0.0.1:\(collector.port)/v1/traces: ") })
        if !isAway { #expect(said.lines.allSatisfy { $0.hasSuffix("the collector responded with 503") }) }
    }

    @Test("an unavailable collector is not contacted constantly, and the log is not flooded")
    func pause() async throws {
        let collector = try Collector(.answers(503))
        defer { collector.stop() }
        let said = ExporterLog()
        let exporter = try said.exporter(collector.url) { $0.afterFailure = .seconds(3_600) }
        exporter.export(span)
        #expect(await eventually { said.count == 1 })
        for _ in 0..<10_000 { exporter.export(span) }
        #expect(exporter.counts.dropped == 1 + 10_000 - 4_096)
        await exporter.flush(timeout: .seconds(60))
        #expect(exporter.counts.dropped == 10_001 && said.count == 10_001)
        #expect(collector.requests.count == 2 && said.lines.count == 2)
    }

    @Test(
        "a collector that accepts a batch and never completes its response costs the batch",
        arguments: [Collector.Behavior.silent, .trickles, .floods])
    func hanging(manner: Collector.Behavior) async throws {
        let collector = try Collector(manner)
        defer { collector.stop() }
        let said = ExporterLog()
        // A flood ends at its size, also on a machine that needs a second for it.
        let timeout: Duration = if case .floods = manner { .seconds(60) } else { .milliseconds(300) }
        let exporter = try said.exporter(collector.url) { $0.response = timeout }
        try await withTraced(exporter, sampling: 1) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            for number in 1...100 { #expect(try await shelf.put("a") == number) }
        }
        await exporter.flush(timeout: .seconds(60))
        #expect(exporter.counts.sent == 0 && exporter.counts.dropped == 100 && said.count == 100)
        let reason =
            switch manner {
            case .floods: "the response is larger than"
            default: "timed out after"
            }
        #expect(said.lines.allSatisfy { $0.contains(reason) && $0.utf8.count < 300 }, "\(said.lines)")
    }

    @Test("an exporter's shutdown does not wait for a collector longer than its timeout")
    func end() async throws {
        let collector = try Collector(.silent)
        defer { collector.stop() }
        let said = ExporterLog()
        let exporter = try said.exporter(collector.url) { $0.response = .seconds(30) }
        for _ in 0..<3_000 { exporter.export(span) }
        #expect(await eventually { collector.requests.count == 1 })
        let began = ContinuousClock.now
        await exporter.flush(timeout: .milliseconds(50))
        #expect(ContinuousClock.now - began < .seconds(20))
        #expect(exporter.counts.dropped == 3_000 && said.count == 3_000)
        #expect(said.lines.last?.hasSuffix("shutdown timed out") == true)
    }

    @Test("an https: collector receives nothing unencrypted, and nothing without a trusted certificate")
    func encrypted() async throws {
        let collector = try Collector()
        defer { collector.stop() }
        let said = ExporterLog()
        let exporter = try said.exporter("https://127.0.0.1:\(collector.port)") { $0.response = .milliseconds(300) }
        exporter.export(span)
        await exporter.flush(timeout: .seconds(60))
        #expect(exporter.counts.dropped == 1 && said.lines.first?.hasPrefix("1 span was not sent to https:") == true)
        // The first message of TLS.
        #expect(await eventually { collector.firstBytes.first?.starts(with: [0x16, 0x03]) == true })
        #expect(collector.requests.isEmpty)
    }

    @Test(
        "an invalid address of a collector is refused, and a password in it is not shown",
        arguments: [
            "", "localhost:4318", "ftp://a", "http://", "http://ada:hidden@localhost:4318", "http://a/#hidden",
            "http://a/\r\nhidden: 1", "https://ada:hid@den@b/", "http://[::1/", "http://a:70000",
            "http://a/" + String(repeating: "a", count: 3_000),
        ])
    func address(url: String) {
        let error = #expect(throws: TransportError.self) { try OTLPExporter(url: url) }
        #expect(error?.code == .addressInvalid && error?.message.utf8.count ?? 0 < 400)
        let message = error?.message ?? ""
        #expect(!url.contains("@") || !message.contains("hid"), "\(message)")
    }

    @Test("a key in the query of the URL is sent to the collector, and never logged")
    func query() async throws {
        let collector = try Collector(.answers(401))
        defer { collector.stop() }
        let said = ExporterLog()
        let exporter = try said.exporter(collector.url + "/in?key=hidden")
        exporter.export(span)
        await exporter.flush(timeout: .seconds(60))
        #expect(collector.requests.first?.hasPrefix("POST /in?key=hidden HTTP/1.1\r\n") == true)
        #expect(said.lines == ["1 span was not sent to \(collector.url)/in: the collector responded with 401"])
    }
}
