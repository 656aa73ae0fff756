import TestSupport
import Testing
import Trebuchet

/// Errors that are not `Codable`: the server's log has their text.
@Suite(.timeLimit(.minutes(5))) struct ErrorDisclosureTests {
    private struct LeakyError: Error, CustomStringConvertible {
        let description = "password hunter2\nerror 00000000: forged"
    }

    /// Throws in every context that can throw.
    @Trebuchet
    fileprivate distributed actor Leaker {
        @StreamedState var state: Int = 0

        distributed func leak() throws { throw LeakyError() }
        distributed func leakLater() async throws -> Int { throw LeakyError() }
        @Idempotent
        distributed func leakOnce() throws -> Int { throw LeakyError() }
        distributed func refuse() throws { throw TrebuchetError(.unauthorized, "not on a Sunday") }
        distributed func close() throws { throw Closed(reason: "holiday") }
    }

    private func withLeaker(
        showsErrorText: Bool = false, _ body: (TrebuchetClient, Journal) async throws -> Void
    ) async throws {
        let journal = Journal()
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, showsErrorText: showsErrorText,
            log: ConsoleLog { journal.record($0) })
        await server.expose(Leaker(actorSystem: server.actorSystem), as: "leaker")
        server.expose(Leaker.self, as: "unmade/*") { _ in throw LeakyError() }
        let client = TrebuchetClient(transport: .local(server))
        try await client.connect()
        try await body(client, journal)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    /// The error's number in a message.
    private func errorNumber(in message: String) -> String? {
        guard let match = message.firstMatch(of: /error ([0-9A-F]{8})/) else { return nil }
        return String(match.1)
    }

    @Test(
        "the caller receives a number, and the server's log has the text under that number",
        arguments: [
            "leak()", "leakLater()", "leakOnce()", "unmade",
        ])
    func hidden(target: String) async throws {
        try await withLeaker { client, journal in
            let leaker = try client.resolve(Leaker.self, id: target == "unmade" ? "unmade/1" : "leaker")
            let error = await #expect(throws: TrebuchetError.self) {
                switch target {
                case "leakLater()": _ = try await leaker.leakLater()
                case "leakOnce()": _ = try await leaker.leakOnce()
                default: try await leaker.leak()
                }
            }
            #expect(error?.code == .application)
            #expect(error?.type == nil)
            #expect(error?.data == nil)
            let number = try #require(errorNumber(in: error?.message ?? ""))
            #expect(error?.message == "the method failed (error \(number); see the server log)")
            let lines = journal.entries.filter { $0.hasPrefix("error \(number): ") }
            #expect(lines.count == 1, "\(journal.entries)")
            #expect(lines.first?.contains("LeakyError: password hunter2\\nerror 00000000: forged") == true, "\(lines)")
        }
    }

    @Test("an observer of an actor whose activation fails receives a number too")
    func hiddenFromStreams() async throws {
        try await withLeaker { client, journal in
            let stream = try await client.resolve(Leaker.self, id: "unmade/2").observeState()
            for await _ in stream {}
            guard case .failed(let error) = stream.outcome else {
                Issue.record("\(String(describing: stream.outcome))")
                return
            }
            #expect(!error.message.contains("hunter2"))
            let number = try #require(errorNumber(in: error.message))
            #expect(journal.entries.contains { $0.hasPrefix("error \(number): ") && $0.contains("hunter2") })
        }
    }

    @Test("in development mode the caller receives text and type, and nothing is logged")
    func shown() async throws {
        try await withLeaker(showsErrorText: true) { client, journal in
            let leaker = try client.resolve(Leaker.self, id: "leaker")
            let error = await #expect(throws: TrebuchetError.self) { try await leaker.leak() }
            #expect(error?.message.hasPrefix("password hunter2") == true)
            #expect(error?.type?.contains("LeakyError") == true)
            #expect(!journal.entries.contains { $0.hasPrefix("error ") })
        }
    }

    @Test("public errors arrive unchanged and are not logged")
    func meantForCallers() async throws {
        try await withLeaker { client, journal in
            let leaker = try client.resolve(Leaker.self, id: "leaker")
            await #expect(throws: TrebuchetError(.unauthorized, "not on a Sunday")) { try await leaker.refuse() }
            client.register(errors: Closed.self)
            await #expect(throws: Closed(reason: "holiday")) { try await leaker.close() }
            #expect(!journal.entries.contains { $0.hasPrefix("error ") })
        }
    }
}
