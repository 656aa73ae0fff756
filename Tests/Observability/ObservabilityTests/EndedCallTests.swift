import Networking
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// Tasks started by a call are not part of it after its response.
@Suite(.timeLimit(.minutes(5))) struct EndedCallTests {
    @Test(
        "the trace of a call ends with it: calls from a task that it started have no span in it",
        arguments: [true, false])
    func traces(hearsOfCalls: Bool) async throws {
        let (listener, journal) = (RecordingEventHandler(hearsOfCalls ? [.spans, .calls] : .spans), Journal())
        try await InspectorRig.with { server in
            server.addEventHandler(listener)
            await server.expose(Worker(journal: journal, actorSystem: server.actorSystem), as: "worker")
        } _: { client, server, _ async throws in
            let worker = try client.resolve(Worker.self, id: "worker")
            let context = TraceContext()
            let port = try #require(server.address).port
            try await TraceContext.with(context) { try await worker.ask(port) }
            journal.record("go")
            await journal.wait(for: "asked")
            let spans = listener.events.compactMap { if case .spanEnded(let span) = $0 { span } else { nil } }
            #expect(spans.map(\.context.traceID) == [context.traceID], "\(spans.map(\.name))")
            #expect(journal.entries.contains("trace: none"), "\(journal.entries)")
        }
    }

    @Test("a change by a task after the call that started it is attributed to server code")
    func changes() async throws {
        let journal = Journal()
        try await InspectorRig.with { server in
            await server.expose(Worker(journal: journal, actorSystem: server.actorSystem), as: "worker")
        } _: { client, _, rig async throws in
            let worker = try client.resolve(Worker.self, id: "worker")
            try await rig.follow("worker")
            try await worker.begin()
            journal.record("go")
            await journal.wait(for: "counted")
            let versions = try await rig.json("/inspect/actors/worker")["recorded"]["versions"].list
            #expect(versions.map { $0["calls"].list.map { $0["method"].text } } == [[], ["begin()"]])
        }
    }
}

/// Returns oversized results, and starts tasks.
@Trebuchet
distributed actor Worker {
    @StreamedState var count: Int = 0
    private let journal: Journal

    init(journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func large() -> String { String(repeating: "a", count: 200_000) }

    distributed func largeLater() async -> String {
        await Task.yield()
        return String(repeating: "a", count: 200_000)
    }

    /// Starts a long-running task, as a game or a feed does, that calls another actor by name.
    distributed func ask(_ port: Int) {
        let journal = journal
        Task {
            await journal.wait(for: "go")
            journal.record("trace: \(TraceContext.current?.traceID ?? "none")")
            let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
            try await client.connect()
            for _ in 0..<3 { _ = try await client.resolve(Shelf.self, id: "shelf").put("a") }
            await client.close()
            journal.record("asked")
        }
    }

    distributed func begin() {
        count += 1
        let journal = journal
        Task { [weak self] in
            await journal.wait(for: "go")
            await self?.whenLocal { $0.count += 1 }
            journal.record("counted")
        }
    }
}
