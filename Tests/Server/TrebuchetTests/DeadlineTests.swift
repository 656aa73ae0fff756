import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) struct DeadlineTests {
    private func withWaiter(
        _ link: TestLink, limits: ServerLimits = ServerLimits(), options: TrebuchetClient.Options = .init(),
        clock: TestTime? = nil, _ body: (Waiter, TrebuchetClient, Journal) async throws -> Void
    ) async throws {
        let journal = Journal()
        try await withTestServer(link: link, limits: limits, options: options, clock: clock) { server in
            await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
        } body: { client, _ in
            try await body(client.resolve(Waiter.self, id: "waiter"), client, journal)
        }
    }

    @Test(
        "a call past its deadline ends with timeout, and its task on the server is cancelled",
        arguments: TestLink.allCases)
    func deadline(link: TestLink) async throws {
        let clock = TestTime()
        try await withWaiter(link, clock: clock) { waiter, _, journal in
            let call = Task { try await withDeadline(.seconds(300)) { try await waiter.hold("a") } }
            await journal.wait(for: "a began")
            await clock.advance(by: .seconds(300))
            let error = await #expect(throws: TrebuchetError.self) { _ = try await call.value }
            #expect(error?.code == .timeout)
            await journal.wait(for: "a was cancelled")
            try await waiter.now(1)
        }
    }

    @Test("the server ends a call whose client sets no deadline", arguments: TestLink.allCases)
    func serverLimit(link: TestLink) async throws {
        var limits = ServerLimits()
        limits.calls.timeout = .seconds(300)
        var options = TrebuchetClient.Options()
        options.callTimeout = nil
        let clock = TestTime()
        try await withWaiter(link, limits: limits, options: options, clock: clock) { waiter, _, journal in
            let call = Task { try await waiter.hold("a") }
            await journal.wait(for: "a began")
            await clock.advance(by: .seconds(300))
            let error = await #expect(throws: TrebuchetError.self) { _ = try await call.value }
            #expect(error?.code == .timeout)
            #expect(error?.message.contains("300.0 seconds") == true, "\(error?.message ?? "")")
            await journal.wait(for: "a was cancelled")
        }
    }

    @Test("the client's limit ends a call", arguments: TestLink.allCases)
    func clientLimit(link: TestLink) async throws {
        var options = TrebuchetClient.Options()
        options.callTimeout = .seconds(300)
        // The server has another clock, so its limit does not end the call first. It answers pings by that clock.
        options.pingInterval = nil
        let clock = TestTime()
        let journal = Journal()
        try await withTestServer { server in
            await server.expose(Waiter(journal: journal, actorSystem: server.actorSystem), as: "waiter")
        } body: { _, server in
            let address = try #require(server.address)
            let transport: TrebuchetTransport =
                switch link {
                case .webSocket: .webSocket(host: address.host, port: address.port)
                case .local: .local(server)
                }
            let client = TrebuchetClient(transport: transport, options: options, clock: clock)
            try await client.connect()
            let waiter = try client.resolve(Waiter.self, id: "waiter")
            let call = Task { try await waiter.hold("a") }
            await journal.wait(for: "a began")
            await clock.advance(by: .seconds(300))
            let error = await #expect(throws: TrebuchetError.self) { _ = try await call.value }
            #expect(error?.code == .timeout)
            #expect(error?.message.contains("hold(_:)") == true)
            await journal.wait(for: "a was cancelled")
            await client.close()
        }
    }

    @Test("a call past its deadline is not sent")
    func alreadyPast() async throws {
        try await withWaiter(.webSocket) { waiter, _, journal in
            let error = await #expect(throws: TrebuchetError.self) {
                try await withDeadline(.zero) { try await waiter.now(1) }
            }
            #expect(error?.code == .timeout)
            try await waiter.now(2)
            #expect(journal.entries == ["2"])
        }
    }

    @Test("the earlier of nested deadlines applies", arguments: TestLink.allCases)
    func nested(link: TestLink) async throws {
        try await withWaiter(link) { waiter, _, _ in
            let error = await #expect(throws: TrebuchetError.self) {
                try await withDeadline(.milliseconds(500)) {
                    _ = try await withDeadline(.seconds(100)) { try await waiter.hold("a") }
                }
            }
            #expect(error?.code == .timeout)
        }
    }

    @Test("a deadline of centuries acts as no deadline")
    func endless() async throws {
        try await withWaiter(.webSocket) { waiter, _, journal in
            journal.record("a go")
            try await #expect(withDeadline(.seconds(Int64.max)) { try await waiter.hold("a") } == "went on")
        }
    }

    @Test("cancellation of the caller's task cancels the call on the server", arguments: TestLink.allCases)
    func cancellation(link: TestLink) async throws {
        try await withWaiter(link) { waiter, _, journal in
            let call = Task { try await waiter.hold("a") }
            await journal.wait(for: "a began")
            call.cancel()
            await #expect(throws: CancellationError.self) { _ = try await call.value }
            await journal.wait(for: "a was cancelled")
        }
    }

    @Test("a call in a cancelled task is not sent", arguments: TestLink.allCases)
    func cancelledBefore(link: TestLink) async throws {
        try await withWaiter(link) { waiter, _, journal in
            let start = Journal()
            let call = Task {
                await start.wait(for: "never")
                try await waiter.now(1)
            }
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
            try await waiter.now(2)
            #expect(journal.entries == ["2"])
        }
    }

    @Test("calls over the client's limit are not sent", arguments: TestLink.allCases)
    func clientCallLimit(link: TestLink) async throws {
        var options = TrebuchetClient.Options()
        options.callsInFlight = 1
        try await withWaiter(link, options: options) { waiter, _, journal in
            let call = Task { try await waiter.hold("a") }
            await journal.wait(for: "a began")
            let error = await #expect(throws: TrebuchetError.self) { try await waiter.now(1) }
            #expect(error?.code == .rateLimited)
            journal.record("a go")
            try await #expect(call.value == "went on")
        }
    }

    @Test("in-flight calls end with an unknown outcome when the connection closes", arguments: TestLink.allCases)
    func connectionGoes(link: TestLink) async throws {
        try await withWaiter(link) { waiter, client, journal in
            let call = Task { try await waiter.hold("a") }
            await journal.wait(for: "a began")
            await client.close()
            let error = await #expect(throws: TrebuchetError.self) { _ = try await call.value }
            #expect(error?.code == .unknownOutcome)
            await journal.wait(for: "a was cancelled")
        }
    }
}
