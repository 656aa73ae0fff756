import Foundation
import Platform
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// The traces of calls, and their events.
@Suite(.timeLimit(.minutes(5))) struct TraceTests {
    static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test("a traceparent is read and written as the W3C specifies")
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
        "an invalid traceparent is refused",
        arguments: [
            "", "00", traceparent + "-", traceparent + "0", "ff" + traceparent.dropFirst(2), traceparent.uppercased(),
            "cc" + traceparent.dropFirst(2) + "x", String(traceparent.dropLast()),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        ])
    func malformed(text: String) { #expect(TraceContext(text) == nil) }

    @Test("traced calls have spans at the server, in place and in tasks, as children of their caller's span")
    func spans() async throws {
        let listener = RecordingEventHandler([.spans, .calls])
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
        #expect(spans.allSatisfy { $0.kind == .server && $0.duration > .zero })
        #expect(spans.map(\.error) == [nil, nil, "application"])
        let attributes = Dictionary(uniqueKeysWithValues: spans[0].attributes.map { ($0.name, $0.value) })
        #expect(attributes["rpc.system"] == "trebuchet" && attributes["rpc.method"] == "put(_:)")
        #expect(attributes["rpc.service"] == "ObservabilityTests.Shelf" && attributes["trebuchet.actor"] == "shelf")
        #expect(!"\(spans)".contains("secret"))
        #expect(listener.calls.map(\.trace?.traceID) == [context.traceID, context.traceID, context.traceID, nil])
    }

    @Test("an unsampled trace has no spans, and calls start traces at the sampling ratio")
    func sampling() async throws {
        let listener = RecordingEventHandler(.spans)
        try await withTraced(listener) { client, server async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            _ = try await shelf.put("a")
            try await TraceContext.with(TraceContext(isSampled: false)) { _ = try await shelf.put("b") }
            #expect(listener.spans.isEmpty)
            server.setTraceSamplingRatio(1)
            _ = try await shelf.put("c")
            try await TraceContext.with(TraceContext(isSampled: false)) { _ = try await shelf.put("d") }
        }
        #expect(listener.spans.count == 1)
        #expect(listener.spans.first?.parentID == nil)
        let some = TraceSampling(ratio: 0.25)
        let count = (0..<10_000).count { _ in some.next() }
        #expect((2_000...3_000).contains(count), "\(count)")
    }

    @Test(
        "counting down to the next sampled call starts as many traces as drawing for each call",
        arguments: [
            (0, 0...0), (0.01, 800...1_200), (0.25, 24_000...26_000), (0.4, 39_000...41_000), (0.75, 74_000...76_000),
            (1, 100_000...100_000),
        ])
    func countdown(ratio: Double, wanted: ClosedRange<Int>) {
        let sampling = TraceSampling()
        var countdown = TraceSampling.Countdown()
        let first = countdown.next(sampling)
        #expect(!first)
        sampling.set(ratio)
        let count = (0..<100_000).count { _ in countdown.next(sampling) }
        #expect(wanted.contains(count), "\(count)")
        sampling.set(0)
        let later = (0..<1_000).count { _ in countdown.next(sampling) }
        #expect(later == 0)
    }

    @Test("methods run in the span of their call, and their calls are its children")
    func children() async throws {
        let listener = RecordingEventHandler(.spans)
        let recorded = Mutex<[TraceSpan]>([])
        var options = TrebuchetClient.Options()
        options.onSpanEnd = { span in recorded.withLock { $0.append(span) } }
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
            // The call that the method made: its span is a child of the span of the method.
            let inner = try #require(listener.spans.first { $0.context.traceparent == seen[2] })
            let outer = try #require(spans["ObservabilityTests.Traced/ask(_:)"]?.first)
            #expect(inner.parentID == outer.spanID && inner.context.traceID == context.traceID)
        }
        let calls = recorded.withLock { $0 }
        #expect(calls.map(\.kind) == [.client, .client, .client])
        #expect(calls.allSatisfy { $0.parentID == context.spanID && $0.context.traceID == context.traceID })
        let parents = Set(listener.spans.compactMap(\.parentID))
        #expect(parents.isSuperset(of: calls.map(\.context.spanID)))
    }

    @Test("a call by an actor to a client is a child of the actor's call, and the client's actor runs in it")
    func clientActors() async throws {
        let listener = RecordingEventHandler(.spans)
        let context = try #require(TraceContext(Self.traceparent))
        try await withTraced(listener) { client, _ async throws in
            let traced = try client.resolve(Traced.self, id: "traced")
            let own = Traced(actorSystem: client.actorSystem)
            let seen = try await TraceContext.with(context) { try await traced.askBack(own) }
            #expect(try await traced.askBack(own) == nil)
            let call = try #require(listener.spans.first { $0.kind == .client })
            let outer = try #require(listener.spans.first { $0.kind == .server })
            #expect(listener.spans.count == 2)
            #expect(call.context.traceparent == seen && call.parentID == outer.context.spanID)
            #expect(outer.parentID == context.spanID && call.context.traceID == context.traceID)
            #expect(call.duration <= outer.duration)
        }
    }

    @Test("a client starts traces by itself when configured")
    func client() async throws {
        let listener = RecordingEventHandler(.spans)
        var options = TrebuchetClient.Options()
        options.traceSampling = 1
        try await withTraced(listener, options: options) { client, _ async throws in
            let shelf = try client.resolve(Shelf.self, id: "shelf")
            for _ in 0..<3 { _ = try await shelf.put("a") }
        }
        #expect(Set(listener.spans.map(\.context.traceID)).count == 3)
        #expect(listener.spans.allSatisfy { $0.parentID != nil })
    }

    @Test("the time that a response waits for the store is a child span of the call")
    func store() async throws {
        let listener = RecordingEventHandler(.spans)
        try await withTraced(listener, sampling: 1, store: MemoryStore()) { client, _ async throws in
            let shelf = try client.resolve(PersistedShelf.self, id: "kept")
            // The first call activates the actor.
            for number in 1...3 { #expect(try await shelf.put("\(number)") == number) }
        }
        let writes = listener.spans.filter { $0.name == "store write" }
        let calls = listener.spans.filter { $0.kind == .server }
        // This also holds when the actor is on another reactor.
        #expect(calls.count == 3 && writes.count == 3)
        for write in writes {
            let call = calls.first { $0.context.spanID == write.parentID }
            #expect(call?.context.traceID == write.context.traceID)
            #expect(write.duration <= call?.duration ?? .zero)
        }
    }

    @Test("log lines of calls have the trace ID, whether or not spans are recorded")
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
}

/// Runs `body` with a server with an event handler, and a client of it.
func withTraced(
    _ listener: any ServerEventHandler, sampling: Double = 0,
    options: TrebuchetClient.Options = TrebuchetClient.Options(), store: (any StateStore)? = nil,
    _ body: (TrebuchetClient, TrebuchetServer) async throws -> Void
) async throws {
    try await withTestServer(options: options, store: store) { server in
        server.addEventHandler(listener)
        server.setTraceSamplingRatio(sampling)
        await server.expose(Shelf(actorSystem: server.actorSystem), as: "shelf")
        await server.expose(Traced(actorSystem: server.actorSystem), as: "traced")
        if store != nil { await server.expose(PersistedShelf(actorSystem: server.actorSystem), as: "kept") }
    } body: { client, server async throws in
        try await body(client, server)
    }
}

extension RecordingEventHandler {
    fileprivate var spans: [TraceSpan] {
        events.compactMap { if case .spanEnded(let span) = $0 { span } else { nil } }
    }
}

/// Returns the trace that it runs in.
@Trebuchet
distributed actor Traced {
    distributed func here() -> String? { TraceContext.current?.traceparent }

    distributed func hereLater() async -> String? {
        await Task.yield()
        return TraceContext.current?.traceparent
    }

    /// The result of `here`, called by this method over a separate connection.
    distributed func ask(_ port: Int) async throws -> String? {
        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        let answer = try await client.resolve(Traced.self, id: "traced").here()
        await client.close()
        return answer
    }

    /// The result of `here` at a client.
    distributed func askBack(_ other: Traced) async throws -> String? { try await other.here() }
}
