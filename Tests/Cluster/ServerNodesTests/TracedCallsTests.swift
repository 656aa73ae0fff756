import NodeSupport
import Platform
import Synchronization
import TestSupport
import Testing
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes
@testable import TrebuchetActors

/// Calls that belong to a trace named in their messages, across several nodes.
@Suite(.timeLimit(.minutes(5))) struct TracedCallsTests {
    private static let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    /// Records the spans of one node.
    private final class Spans: ServerEventHandler {
        let kinds: ServerEvent.Kinds = .spans
        private let received = Mutex<[TraceSpan]>([])

        var all: [TraceSpan] { received.withLock { $0 } }

        func handle(_ event: ServerEvent) {
            if case .spanEnded(let span) = event { received.withLock { $0.append(span) } }
        }
    }

    private func listen(to node: Node) -> Spans {
        let spans = Spans()
        node.server.addEventHandler(spans)
        return spans
    }

    private func member(_ text: String) -> String { #","traceparent":"\#(text)""# }

    /// The `traceparent` member of a response.
    private func traceparent(in answer: String) -> String? {
        answer.firstMatch(of: /"traceparent":"([^"]*)"/).map { String($0.1) }
    }

    @Test(
        "a call answered by another node is part of its caller's trace, and has a span there",
        arguments: [false, true])
    func relayed(areReached: Bool) async throws {
        try await withNodes(["a", "b"], areReached: areReached) { nodes in
            let (here, there) = (listen(to: nodes[0]), listen(to: nodes[1]))
            let context = try #require(TraceContext(Self.traceparent))
            let recorded = Mutex<[TraceSpan]>([])
            var options = TrebuchetClient.Options()
            options.onSpanEnd = { span in recorded.withLock { $0.append(span) } }
            let client = try await nodes[0].client(options)
            let name = nodes[1].names(1)[0]
            let tally = try client.resolve(Tally.self, id: name)
            // Activates the actor.
            #expect(try await tally.add(0) == 0)
            let counts = try await TraceContext.with(context) {
                let counts = [try await tally.add(1), try await tally.addOnce(1)]
                await #expect(throws: TrebuchetError.self) { try await tally.refuse() }
                return counts
            }
            #expect(counts == [1, 2])
            #expect(try await tally.add(0) == 2)
            #expect(await eventually { there.all.count { $0.kind == .server } == 3 })
            let calls = there.all.filter { $0.kind == .server }
            let own = recorded.withLock { $0 }
            #expect(calls.map(\.parentID) == own.map(\.context.spanID) && own.count == 3)
            #expect((calls + own).allSatisfy { $0.context.traceID == Self.trace })
            #expect(calls.map(\.error) == [nil, nil, "unauthorized"])
            #expect(own.map(\.error) == [nil, nil, "unauthorized"])
            #expect(here.all.isEmpty)
            // The response to a call that changes a persisted state in place waits for the store.
            let writes = there.all.filter { $0.name == "store write" }
            #expect(writes.contains { $0.parentID == calls[0].context.spanID })
        }
    }

    @Test("a call by an actor, to another node or its own, is a child span of the actor's call")
    func children() async throws {
        try await withNodes(["a", "b"]) { nodes in
            let (here, there) = (listen(to: nodes[0]), listen(to: nodes[1]))
            let context = try #require(TraceContext(Self.traceparent))
            let client = try await nodes[0].client()
            let clerk = try client.resolve(CrossNodeCaller.self, id: #require(nodes[0].names("clerks").first))
            let tallies = [nodes[0].names(1)[0], nodes[1].names(1)[0]]
            #expect(try await TraceContext.with(context) { try await clerk.count(tallies) } == 2)
            #expect(await eventually { there.all.contains { $0.kind == .server } })
            #expect(await eventually { here.all.count { $0.kind == .server } == 2 })
            let outer = try #require(here.all.first { $0.name.hasSuffix("CrossNodeCaller/count(_:)") })
            #expect(outer.parentID == context.spanID)
            let inner = (here.all + there.all).filter { $0.name.hasSuffix("Tally/add(_:)") }
            #expect(inner.count == 2)
            #expect(inner.allSatisfy { $0.parentID == outer.context.spanID && $0.context.traceID == Self.trace })
            // A call without a trace has none, although an earlier one had.
            #expect(try await clerk.count(tallies) == 4)
            #expect(there.all.count { $0.kind == .server } == 1)
        }
    }

    @Test("a call resent to its owner is still part of its trace")
    func again() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: gate) { nodes in
            let there = listen(to: nodes[1])
            let till = nodes[1].names("tills")[0]
            let client = try await nodes[0].textClient()
            client.callOnce(1, till, "pay(_:_:)", #"["traced",1]"#)
            #expect(await client.answer(1) != nil)
            let texts = {
                gate.messages(to: nodes[1].member.node).map { String(decoding: $0, as: UTF8.self) }
            }
            gate.set { ($0.losesMessages, $0.keepsMessages) = (true, true) }
            let more = #","session":"\#(client.session)""# + member(Self.traceparent)
            client.call(2, till, "pay(_:_:)", #"["traced",2]"#, more: more)
            #expect(await eventually { texts().contains { $0.contains(#""traced",2"#) } })
            gate.set { $0.losesMessages = false }
            nodes[0].server.context.nodes?.exchange.closeLostChannels(of: nodes[1].member.node)
            let answer = try #require(await client.answer(2))
            #expect(answer.contains(#""result":2"#))
            #expect(traceparent(in: answer)?.hasPrefix("00-\(Self.trace)-") == true, "\(answer)")
            #expect(PaymentLog.shared.count("traced") == 2)
            let sent = texts()
            #expect(
                sent.contains { $0.contains(#""type":"repeat""#) && $0.contains(member(Self.traceparent)) }, "\(sent)")
            #expect(there.all.contains { $0.context.traceID == Self.trace && $0.parentID == "00f067aa0ba902b7" })
            client.abort()
        }
    }

    @Test("a response names the span of its call only to callers that have sent a trace", arguments: [0, 1])
    func answers(node: Int) async throws {
        try await withNodes(["a", "b"]) { nodes in
            let spans = listen(to: nodes[1])
            let client = try await nodes[node].textClient()
            let name = nodes[1].names(1)[0]
            client.call(1, name, "add(_:)", "[1]", more: member(Self.traceparent))
            client.call(2, name, "refuse()", "[]", more: member(Self.traceparent))
            client.call(3, name, "add(_:)", "[1]")
            client.call(4, name, "caller()", "[]", more: member(Self.traceparent.dropLast() + "0"))
            var named: [String?] = []
            for callID in 1...4 { named.append(traceparent(in: try #require(await client.answer(callID)))) }
            #expect(await eventually { spans.all.count { $0.kind == .server } == 2 })
            let recorded = spans.all.filter { $0.kind == .server }.map(\.context.traceparent)
            #expect(Set(named[0...1].compactMap(\.self)) == Set(recorded) && named[2] == nil)
            // A call that is not sampled has no span to name.
            #expect(named[3] == nil)
            client.abort()
        }
    }

    @Test(
        "an invalid traceparent does not affect the call, makes no span, and never appears in the log",
        arguments: [
            #""""#, "null", "17", "true", "{}", #"["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]"#,
            #""00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0""#,
            #""00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01""#,
            #""00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 mischief=1""#,
            #""\u0030\u0030-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01""#,
            #""00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\n1""#,
            #""00-ééééééééééééééé36-00f067aa0ba902b7-01""#,
            #""mischief\r\nlevel=error""#, "\"" + String(repeating: "mischief", count: 8_000) + "\"",
        ])
    func malformed(text: String) async throws {
        let lines = Mutex<[String]>([])
        let log = ServerLog(level: .trace) { line in lines.withLock { $0.append(line) } }
        try await withNodes(["a", "b"]) { nodes in
            let spans = nodes.map { listen(to: $0) }
            for node in nodes { node.server.addEventHandler(log) }
            let client = try await nodes[0].textClient()
            for (callID, name) in [nodes[0].names(1)[0], nodes[1].names(1)[0]].enumerated() {
                client.call(callID, name, "add(_:)", "[4]", more: #","traceparent":\#(text)"#)
                let answer = try #require(await client.answer(callID))
                #expect(answer.contains(#""result":4"#) && !answer.contains("trace"), "\(answer)")
            }
            #expect(spans.allSatisfy { $0.all.isEmpty })
            client.abort()
        }
        await onThread { log.flush() }
        let said = lines.withLock { $0 }
        #expect(said.contains { $0.contains("method=add(_:)") })
        #expect(!said.contains { $0.contains("mischief") || $0.contains("trace=") })
    }
}
