import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// A client with more calls than its server admits at once.
@Suite(.timeLimit(.minutes(5))) struct PendingCallTests {
    /// Runs `body` with a server that admits one call at a time, and a call that occupies it.
    private func withBusyServer(
        _ link: TestLink, clock: TestTime? = nil,
        _ body: (Waiter, Journal, Task<String, any Error>) async throws -> Void
    ) async throws {
        let journal = Journal()
        var limits = ServerLimits()
        limits.calls.perConnection = 1
        try await withTestServer(link: link, limits: limits, clock: clock) { server in
            await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
        } body: { client, _ in
            let waiter = try client.resolve(Waiter.self, id: "waiter")
            // Answered after the server's limits are known.
            try await waiter.now(0)
            let holding = Task { try await waiter.hold("a") }
            await journal.wait(for: "a began")
            try await body(waiter, journal, holding)
        }
    }

    @Test("2,000 concurrent calls receive 2,000 responses", arguments: TestLink.allCases)
    func crowd(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, _ in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            let calls = (0..<2_000).map { number in
                Task { try await calculator.joinLater(number, text: "x") }
            }
            var refused = 0
            for (number, call) in calls.enumerated() {
                do {
                    let answer = try await call.value
                    #expect(answer == "\(number) x")
                } catch {
                    refused += 1
                }
            }
            #expect(refused == 0)
        }
    }

    @Test("large calls also wait for the calls before them", arguments: TestLink.allCases)
    func bytes(link: TestLink) async throws {
        var limits = ServerLimits()
        limits.calls.bytesPerConnection = 100_000
        try await withTestServer(link: link, limits: limits) { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { client, _ in
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            #expect(try await calculator.zero() == 0)
            let text = String(repeating: "x", count: 30_000)
            let calls = (0..<40).map { number in Task { try await calculator.joinLater(number, text: text) } }
            for call in calls { #expect(try await call.value.utf8.count > 30_000) }
        }
    }

    @Test("queued calls start in order", arguments: TestLink.allCases)
    func order(link: TestLink) async throws {
        try await withBusyServer(link) { waiter, journal, holding in
            let calls = (1...50).map { number in
                Task.immediate {
                    if number.isMultiple(of: 3) { try await waiter.later(number) } else { try await waiter.now(number) }
                }
            }
            journal.record("a go")
            for call in calls { try await call.value }
            #expect(try await holding.value == "went on")
            let numbers = journal.entries.compactMap { Int($0) }
            #expect(numbers == Array(0...50))
        }
    }

    @Test("a queued call ends at its deadline, and is never sent", arguments: TestLink.allCases)
    func deadline(link: TestLink) async throws {
        let clock = TestTime()
        try await withBusyServer(link, clock: clock) { waiter, journal, holding in
            let call = Task.immediate { try await withDeadline(.seconds(10)) { try await waiter.later(1) } }
            await clock.advance(by: .seconds(10))
            let error = await #expect(throws: TrebuchetError.self) { try await call.value }
            #expect(error?.code == .timeout)
            let message = error?.message ?? ""
            #expect(message.contains("the server's limit is reached by 1 call with "), "\(message)")
            #expect(message.contains(" bytes in flight (ServerLimits.calls.perConnection = 1)"), "\(message)")
            journal.record("a go")
            try await waiter.later(2)
            #expect(try await holding.value == "went on")
            #expect(!journal.entries.contains("1"))
        }
    }

    @Test("a call that waits for a connection fails at its deadline with the reason for the missing connection")
    func noConnection() async throws {
        try await withTestServer { server in
            await server.expose(Calculator(actorSystem: server.actorSystem), as: "calculator")
        } body: { (test: TestServer) async throws in
            var options = TrebuchetClient.Options()
            (options.reconnect.initialDelay, options.reconnect.maximumDelay) = (.milliseconds(5), .milliseconds(5))
            let client = try await test.connect(options)
            let calculator = try client.resolve(Calculator.self, id: "calculator")
            await test.kill()
            for await state in client.connectionState.stream {
                if case .connecting(_, let error?) = state, error.code == .refused { break }
            }
            let error = await #expect(throws: TrebuchetError.self) {
                try await withDeadline(.milliseconds(200)) { _ = try await calculator.zero() }
            }
            #expect(error?.code == .timeout)
            let message = error?.message ?? ""
            for part in [
                "zero() was not sent before its deadline", "there was no connection", "\(test.address.port)", "refused",
            ] {
                #expect(message.contains(part), "\(message)")
            }
        }
    }

    @Test("a queued call is cancelled with its task, and is never sent", arguments: TestLink.allCases)
    func cancellation(link: TestLink) async throws {
        try await withBusyServer(link) { waiter, journal, holding in
            let calls = (1...20).map { number in Task.immediate { try await waiter.later(number) } }
            for call in calls { call.cancel() }
            for call in calls { await #expect(throws: CancellationError.self) { try await call.value } }
            journal.record("a go")
            try await waiter.later(21)
            #expect(try await holding.value == "went on")
            #expect(journal.entries.compactMap { Int($0) } == [0, 21])
        }
    }

    @Test("a queued call is sent over the next connection when this one breaks")
    func reconnection() async throws {
        let journal = Journal()
        var limits = ServerLimits()
        limits.calls.perConnection = 1
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), limits: limits)
        await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
        let link = try FaultyLink(to: try await server.start(), seed: 1)
        let client = TrebuchetClient(transport: .webSocket(host: link.address.host, port: link.address.port))
        try await client.connect()
        let waiter = try client.resolve(Waiter.self, id: "waiter")
        try await waiter.now(0)
        let holding = Task { try await waiter.hold("a") }
        await journal.wait(for: "a began")
        let calls = (1...10).map { number in Task.immediate { try await waiter.later(number) } }
        await link.disconnectAll()
        let error = await #expect(throws: TrebuchetError.self) { _ = try await holding.value }
        #expect(error?.code == .unknownOutcome)
        for call in calls { try await call.value }
        #expect(journal.entries.compactMap { Int($0) } == Array(0...10))
        await client.close()
        await link.close()
        await server.shutdown(drain: .zero)
    }
}
