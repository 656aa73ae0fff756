import Foundation
import Platform
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// Which traces calls are part of, and what is told of them.
@Suite(.timeLimit(.minutes(1))) struct TraceTests {
    private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    private func withTraced(
        _ listener: any ServerListener, sampling: Double = 0,
        options: TrebuchetClient.Options = TrebuchetClient.Options(), store: (any StateStore)? = nil,
        _ body: (TrebuchetClient, TrebuchetServer) async throws -> Void
    ) async throws {
        try await withTestServer(options: options, store: store) { server in
            server.addListener(listener)
            server.sampleTraces(sampling)
            await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
            await server.expose(Traced(actorSystem: server.actorSystem), as: "traced")
            if store != nil { await server.expose(KeptShelf(actorSystem: server.actorSystem), as: "kept") }
        } body: { client, server async throws in
            try await body(client, server)
        }
    }

    @Test("a traceparent is read and written as the W3C says")
    func contexts() throws {
        let context = try #require(TraceContext(Self.traceparent))
        #expect(context.traceID == "4bf92f3577b34da6a3ce929d0e0e4736")
        #expect(context.spanID == "00f067aa0ba902b7")
        #expect(context.isSampled)
        #expect(context.traceparent == Self.traceparent)
        #expect(TraceContext(Self.traceparent.dropLast() + "0")?.isSampled == false)
        #expect(TraceContext("cc" + Self.traceparent.dropFirst(2) + "-more")?.traceID == context.traceID)
        let child = context.child
        #expect(child.traceID == context.traceID && child.spanID != context.spanID && child.isSampled)
        #expect(TraceContext().traceID != TraceContext().traceID)
    }

    @Test(
        "what is no traceparent is none",
        arguments: [
            "", "00", traceparent + "-", traceparent + "0", "ff" + traceparent.dropFirst(2), traceparent.uppercased(),
            "cc" + traceparent.dropFirst(2) + "x", String(traceparent.dropLast()),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        ])
    func malformed(text: String) { #expect(TraceContext(text) == nil) }

    @Test("calls of a trace have spans at the server, in place and in tasks, children of their caller's")
    func spans() async throws {
        let listener = Listener([.spans, .calls])
        let context = try #require(TraceContext(Self.traceparent))
        try await withTraced(listener) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            try await TraceContext.with(context) {
                _ = try await shelf.put("secret one")
                _ = try await shelf.putLater("secret two")
                await #expect(throws: TrebuchetError.self) { try await shelf.refuse("secret three") }
            }
            _ = try await shelf.put("in no trace")
        }
        let spans = listener.spans
        #expect(
            spans.map(\.name)
                == ["put(_:)", "putLater(_:)", "refuse(_:)"].map { "ObservabilityTests.Shelf/\($0)" })
        #expect(spans.allSatisfy { $0.context.traceID == context.traceID && $0.parentID == context.spanID })
        #expect(Set(spans.map(\.context.spanID)).count == 3)
        #expect(spans.allSatisfy { $0.kind == .server && $0.took > .zero })
        #expect(spans.map(\.error) == [nil, nil, "application"])
        let attributes = Dictionary(uniqueKeysWithValues: spans[0].attributes.map { ($0.name, $0.value) })
        #expect(attributes["rpc.system"] == "trebuchet" && attributes["rpc.method"] == "put(_:)")
        #expect(attributes["rpc.service"] == "ObservabilityTests.Shelf" && attributes["trebuchet.actor"] == "shelf")
        #expect(!"\(spans)".contains("secret"))
        #expect(listener.calls.map(\.trace?.traceID) == [context.traceID, context.traceID, context.traceID, nil])
    }

    @Test("of a trace that is not kept there are no spans, and calls begin traces as often as is asked for")
    func sampling() async throws {
        let listener = Listener(.spans)
        try await withTraced(listener) { client, server async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await shelf.put("a")
            try await TraceContext.with(TraceContext(isSampled: false)) { _ = try await shelf.put("b") }
            #expect(listener.spans.isEmpty)
            server.sampleTraces(1)
            _ = try await shelf.put("c")
            try await TraceContext.with(TraceContext(isSampled: false)) { _ = try await shelf.put("d") }
        }
        #expect(listener.spans.count == 1)
        #expect(listener.spans.first?.parentID == nil)
        let some = TraceSampling(ratio: 0.25)
        let count = (0..<10_000).count { _ in some.next() }
        #expect((2_000...3_000).contains(count), "\(count)")
    }

    @Test("methods are within the span of their call, and what they call is a child of it")
    func children() async throws {
        let listener = Listener(.spans)
        let told = Mutex<[TraceSpan]>([])
        var options = TrebuchetClient.Options()
        options.spanEnded = { span in told.withLock { $0.append(span) } }
        let context = try #require(TraceContext(Self.traceparent))
        try await withTraced(listener, options: options) { client, server async throws in
            let traced = try client.resolve(Traced.self, id: "traced")
            #expect(try await traced.here() == nil)
            let port = try #require(server.address?.port)
            let seen = try await TraceContext.with(context) {
                [try await traced.here(), try await traced.hereLater(), try await traced.ask(port)]
            }
            #expect(await eventually { listener.spans.count == 4 })
            let spans = Dictionary(grouping: listener.spans, by: \.name).mapValues { $0.map(\.context) }
            #expect(spans["ObservabilityTests.Traced/here()"]?.first?.traceparent == seen[0])
            #expect(spans["ObservabilityTests.Traced/hereLater()"]?.first?.traceparent == seen[1])
            // The call that the method made: its span is a child of that of the method.
            let inner = try #require(listener.spans.first { $0.context.traceparent == seen[2] })
            let outer = try #require(spans["ObservabilityTests.Traced/ask(_:)"]?.first)
            #expect(inner.parentID == outer.spanID && inner.context.traceID == context.traceID)
        }
        let calls = told.withLock { $0 }
        #expect(calls.map(\.kind) == [.client, .client, .client])
        #expect(calls.allSatisfy { $0.parentID == context.spanID && $0.context.traceID == context.traceID })
        let parents = Set(listener.spans.compactMap(\.parentID))
        #expect(parents.isSuperset(of: calls.map(\.context.spanID)))
    }

    @Test("a client begins traces by itself when it is to")
    func client() async throws {
        let listener = Listener(.spans)
        var options = TrebuchetClient.Options()
        options.traceSampling = 1
        try await withTraced(listener, options: options) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            for _ in 0..<3 { _ = try await shelf.put("a") }
        }
        #expect(Set(listener.spans.map(\.context.traceID)).count == 3)
        #expect(listener.spans.allSatisfy { $0.parentID != nil })
    }

    @Test("the time that an answer waits for the store is a child of the call")
    func store() async throws {
        let listener = Listener(.spans)
        try await withTraced(listener, sampling: 1, store: MemoryStore()) { client, _ async throws in
            let shelf = try client.resolve(KeptShelf.self, id: "kept")
            // The first makes the actor.
            for number in 1...3 { #expect(try await shelf.put("\(number)") == number) }
        }
        let writes = listener.spans.filter { $0.name == "store write" }
        let calls = listener.spans.filter { $0.kind == .server }
        #expect(calls.count == 3 && !writes.isEmpty)
        for write in writes {
            let call = calls.first { $0.context.spanID == write.parentID }
            #expect(call?.context.traceID == write.context.traceID)
            #expect(write.took <= call?.took ?? .zero)
        }
    }

    @Test("lines of calls have the ID of their trace, whether or not spans are kept")
    func log() async throws {
        let lines = Mutex<[String]>([])
        let log = ServerLog(level: .debug) { line in lines.withLock { $0.append(line) } }
        let context = try #require(TraceContext(Self.traceparent))
        try await withTraced(log) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            try await TraceContext.with(context) { _ = try await shelf.put("a") }
        }
        await onThread { log.flush() }
        let line = lines.withLock { $0 }.first { $0.contains("method=put(_:)") }
        #expect(line?.contains(" trace=4bf92f3577b34da6a3ce929d0e0e4736") == true, "\(line ?? "-")")
    }

    // MARK: OTLP

    @Test("a collector gets the spans as OTLP in JSON")
    func otlp() async throws {
        let collector = try Collector()
        defer { collector.stop() }
        let exporter = try OTLPExporter(url: collector.url, service: "a \"service\"", log: { _ in })
        try await withTraced(exporter) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            try await TraceContext.with(TraceContext(Self.traceparent)) {
                _ = try await shelf.put("a")
                await #expect(throws: TrebuchetError.self) { try await shelf.refuse("b") }
            }
        }
        await exporter.flush()
        let counts = exporter.counts
        #expect(counts.sent == 2 && counts.leftOut == 0)
        #expect(collector.requests.allSatisfy { $0.hasPrefix("POST /v1/traces HTTP/1.1\r\n") })
        #expect(collector.requests.allSatisfy { $0.contains("\r\nContent-Type: application/json\r\n") })
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

    private var span: TraceSpan {
        TraceSpan("a", .internal, TraceContext(), of: nil, beganAt: 1, took: 1, attributes: [], error: nil)
    }

    @Test("a collector that does not answer holds nobody up: what there is no room for is left out, counted and said")
    func slow() async throws {
        let gate = ThreadSemaphore()
        let collector = try Collector(gate: gate)
        defer { collector.stop() }
        let lines = Mutex<[String]>([])
        let exporter = try OTLPExporter(url: collector.url) { line in lines.withLock { $0.append(line) } }
        for _ in 0..<6_000 { exporter.add(span) }
        let left = exporter.counts.leftOut
        // 4,096 wait, and those of one batch may be on their way.
        #expect((6_000 - 4_096 - 512...6_000 - 4_096).contains(left), "\(left)")
        for _ in 0..<20 { gate.signal() }
        await exporter.flush()
        let counts = exporter.counts
        #expect(counts.sent + counts.leftOut == 6_000 && counts.leftOut == left)
        #expect(collector.spans.count == counts.sent)
        #expect(lines.withLock { $0 }.first?.hasPrefix("\(left) spans were not sent to ") == true)
    }

    @Test("a collector that is away or refuses costs the spans, and a line says so", arguments: [true, false])
    func away(isAway: Bool) async throws {
        let collector = try Collector(status: 503)
        if isAway { collector.stop() }
        defer { if !isAway { collector.stop() } }
        let lines = Mutex<[String]>([])
        let exporter = try OTLPExporter(url: collector.url) { line in lines.withLock { $0.append(line) } }
        try await withTraced(exporter, sampling: 1) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            #expect(try await shelf.put("a") == 1)
        }
        await exporter.flush()
        let counts = exporter.counts
        #expect(counts.sent == 0 && counts.leftOut == 1)
        let said = lines.withLock { $0 }
        #expect(said.count == 1 && said[0].hasPrefix("1 spans were not sent to http://127.0.0.1:"), "\(said)")
        if !isAway { #expect(said[0].hasSuffix("it answers 503")) }
    }

    @Test("what is no address of a collector is refused", arguments: ["", "localhost:4318", "ftp://a", "http://"])
    func address(url: String) {
        let error = #expect(throws: TransportError.self) { try OTLPExporter(url: url) }
        #expect(error?.code == .addressInvalid)
    }
}

extension Listener {
    fileprivate var spans: [TraceSpan] {
        events.compactMap { if case .spanEnded(let span) = $0 { span } else { nil } }
    }
}

/// Says which trace it is in.
@Trebuchet
distributed actor Traced {
    distributed func here() -> String? { TraceContext.current?.traceparent }

    distributed func hereLater() async -> String? {
        await Task.yield()
        return TraceContext.current?.traceparent
    }

    /// What `here` says to a call of this method's, made over a connection of its own.
    distributed func ask(_ port: Int) async throws -> String? {
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        let answer = try await client.resolve(Traced.self, id: "traced").here()
        await client.close()
        return answer
    }
}
