import Networking
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors

/// What goes on in tasks that a call has begun is no part of it once it is answered.
@Suite(.timeLimit(.minutes(5))) struct EndedCallTests {
    @Test(
        "the trace of a call ends with it: what a task calls that it has begun has no span of it",
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

    @Test("a change that a task makes behind the call that began it was made by code of the server")
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

/// Answers too much, and goes on by itself.
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

    /// Begins something that goes on, as a game or a feed does, and asks another actor by its name now and then.
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
