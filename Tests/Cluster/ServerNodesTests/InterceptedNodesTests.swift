import NodeSupport
import Platform
import Synchronization
import TestSupport
import Testing
import Transports
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// Interceptors and metadata of calls that are forwarded between nodes.
@Suite(.timeLimit(.minutes(5))) struct InterceptedNodesTests {
    /// Records the requests of a node.
    private struct Recorder: ServerInterceptor {
        let node: String
        let journal: Journal

        func call(_ request: ServerRequest, next: ServerInterceptor.Next) async throws -> InterceptedResult {
            record(request)
            return try await next(request)
        }

        func startStream(_ request: ServerRequest) async throws { record(request) }

        func record(_ request: ServerRequest) {
            let texts = [
                request.target, request.principal?.id, request.metadata["request-id"],
                request.caller?.connection.headers["x-device"],
            ]
            journal.record("\(node): " + texts.map { $0 ?? "-" }.joined(separator: " "))
        }
    }

    /// Records them without a task.
    private struct Admission: AdmissionInterceptor {
        let recorder: Recorder

        func admit(_ request: ServerRequest) throws { recorder.record(request) }
    }

    private func nodes(
        _ engine: MemoryEngine, through route: (any ClusterEngine)? = nil, isAdmission: Bool, _ journal: Journal
    ) throws -> [Node] {
        try ["a", "b"].map { name in
            var access = AccessPolicy(authenticate: { request in request.bearerToken.map { Principal(id: $0) } })
            access.retainedHeaders = ["X-Device"]
            let recorder = Recorder(node: name, journal: journal)
            access.interceptors = [isAdmission ? Admission(recorder: recorder) : recorder]
            return try Node(name, engine, through: route, access: access)
        }
    }

    @Test(
        "the owner of an actor intercepts its calls and streams once, with the principal, headers and metadata of the client",
        arguments: [false, true])
    func forwarded(isAdmission: Bool) async throws {
        let journal = Journal()
        let nodes = try nodes(MemoryEngine(), isAdmission: isAdmission, journal)
        try await Node.with(nodes) {
            var options = Node.options
            options.token = { "ada" }
            options.headers = ["X-Device": "phone"]
            let client = try await nodes[0].client(options)
            for (node, name) in zip(nodes, ["a", "b"]) {
                let tally = try client.resolve(Tally.self, id: node.names(1)[0])
                let before = journal.entries.count
                try await CallMetadata.with(["request-id": "7"]) { () async throws in
                    #expect(try await tally.add(1) == 1)
                    #expect(try await tally.addOnce(1) == 2)
                    for await count in await tally.observeCount() {
                        #expect(count == 2)
                        break
                    }
                }
                #expect(try await tally.add(1) == 3)
                #expect(
                    journal.entries[before...] == [
                        "\(name): add(_:) ada 7 phone", "\(name): addOnce(_:) ada 7 phone",
                        "\(name): observeCount ada 7 phone", "\(name): add(_:) ada - phone",
                    ])
            }
        }
    }

    @Test("a call that was forwarded and returns is intercepted where it is executed", arguments: [false, true])
    func returned(isAdmission: Bool) async throws {
        let journal = Journal()
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        let nodes = try nodes(engine, through: gate, isAdmission: isAdmission, journal)
        try await Node.with(nodes) {
            var options = Node.options
            options.token = { "ada" }
            let client = try await nodes[0].client(options)
            let tally = try client.resolve(Tally.self, id: nodes[1].names(1)[0])
            gate.set { $0.holdsMessages = true }
            async let count = tally.addOnce(1)
            #expect(await eventually { gate.pausedCount > 0 })
            try await nodes[1].kill()
            gate.set { $0.holdsMessages = false }
            #expect(try await count == 1)
            #expect(journal.entries.contains("a: addOnce(_:) ada - -"), "\(journal.entries)")
        }
    }

    @Test("a call that is sent to its owner again keeps its metadata")
    func again() async throws {
        let engine = MemoryEngine()
        let gate = FaultyEngine(engine)
        try await withNodes(["a", "b"], engine: engine, through: gate) { nodes in
            let till = nodes[1].names("tills")[0]
            let client = try await nodes[0].textClient()
            client.callOnce(1, till, "pay(_:_:)", #"["intercepted",1]"#)
            #expect(await client.answer(1) != nil)
            let texts = {
                gate.messages(to: nodes[1].member.node).map { String(decoding: $0, as: UTF8.self) }
            }
            gate.set { ($0.losesMessages, $0.keepsMessages) = (true, true) }
            let metadata = #","metadata":{"request-id":"7\u00e9"}"#
            client.callOnce(2, till, "pay(_:_:)", #"["intercepted",2]"#, more: metadata)
            #expect(await eventually { texts().contains { $0.contains(#""intercepted",2"#) } })
            gate.set { $0.losesMessages = false }
            nodes[0].server.context.nodes?.exchange.closeLostChannels(of: nodes[1].member.node)
            #expect(try #require(await client.answer(2)).contains(#""result":2"#))
            #expect(PaymentLog.shared.count("intercepted") == 2)
            let sent = texts()
            #expect(sent.contains { $0.contains(#""type":"repeat""#) && $0.contains(metadata) }, "\(sent)")
            client.abort()
        }
    }
}
