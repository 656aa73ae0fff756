import TestSupport
import Testing
import Transports

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// A transport whose attempts never end unless cancelled, or fail at once, or whose connections never end.
private struct StuckTransport: ClientTransport {
    enum Kind { case silent, refused, endless }

    let kind: Kind
    let journal: Journal
    var address: String { "stuck" }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        journal.record("begun")
        switch kind {
        case .silent:
            await journal.wait(for: "never")
            journal.record("cancelled")
            throw CancellationError()
        case .refused: throw TransportError(.refused, "nobody is there")
        case .endless: receiver.linkDidOpen(EndlessLink())
        }
    }
}

private final class EndlessLink: ClientLink {
    var callSession: String? { nil }
    func send(_ message: [UInt8]) {}
    func close() {}
}

@Suite(.timeLimit(.minutes(5))) struct ConnectCancellationTests {
    private let journal = Journal()

    private func client(_ kind: StuckTransport.Kind) -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.reconnect.retriesFirstConnection = true
        let transport: any ClientTransport = StuckTransport(kind: kind, journal: journal)
        return TrebuchetClient(transport: transport, options: options)
    }

    private func connecting(_ client: TrebuchetClient) -> Task<Void, any Error> { Task { try await client.connect() } }

    @Test("a cancelled task stops waiting for a connection, and no connection is made", arguments: [true, false])
    func cancelled(isRefused: Bool) async throws {
        let client = client(isRefused ? .refused : .silent)
        let task = connecting(client)
        await journal.wait(for: "begun")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await eventually { client.connectionState.currentValue == .disconnected(nil) })
        if !isRefused { await journal.wait(for: "cancelled") }
        await client.close()
    }

    @Test("a task that was cancelled before it connects starts no attempt")
    func cancelledBefore() async throws {
        let client = client(.silent)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await client.connect()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(journal.entries.isEmpty && client.connectionState.currentValue == .disconnected(nil))
        await client.close()
    }

    @Test("an attempt continues while another task or a call waits for it")
    func others() async throws {
        let client = client(.silent)
        let (first, second) = (connecting(client), connecting(client))
        await journal.wait(for: "begun")
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let till = try client.resolve(TodoList.self, id: "todos")
        let call = Task { try await till.add(title: "a") }
        #expect(await eventually { await client.waitingCallCount == 1 })
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(client.connectionState.currentValue == .connecting(attempt: 1, after: nil))
        #expect(journal.entries == ["begun"])
        await client.disconnect()
        await #expect(throws: TrebuchetError.self) { try await call.value }
        await journal.wait(for: "cancelled")
        await client.close()
    }

    @Test("a cancelled task does not wait for the end of a connection, which is closed nevertheless")
    func disconnect() async throws {
        let client = client(.endless)
        try await client.connect()
        let task = Task { await client.disconnect() }
        #expect(await eventually { client.connectionState.currentValue == .disconnected(nil) })
        task.cancel()
        await task.value
        let closing = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await client.close()
        }
        await closing.value
        #expect(await eventually { client.connectionState.currentValue == .closed })
    }
}
