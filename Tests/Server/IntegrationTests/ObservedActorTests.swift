import Glibc
import Observation
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The actor of `trebuchet serve`, as far as it is used here.
@Trebuchet
private distributed actor Counter {
    struct State: Codable, Sendable, Equatable {
        var count: Int
    }

    @StreamedState var state: State = State(count: 0)

    distributed func increment() -> Int {
        state.count += 1
        return state.count
    }
}

/// The state of a view during network failures.
@Suite(.timeLimit(.minutes(5))) @MainActor struct ObservedActorTests {
    /// The observer's published state at one moment; errors are reduced to their codes.
    private struct ObservedStatus: Equatable, Sendable {
        var value: [Int]?
        var isConnecting: Bool
        var error: TrebuchetError.Code?
        var isConnected: Bool
    }

    private func picture(of observer: ActorObserver<OnceWrittenNumbers, [Int]>) -> ObservedStatus {
        ObservedStatus(
            value: observer.value, isConnecting: observer.isConnecting, error: observer.error?.code,
            isConnected: observer.connectionState == .connected)
    }

    private func untilTrue(_ condition: @escaping @MainActor () -> Bool) async {
        for await isTrue in Observations({ condition() }) where isTrue { return }
    }

    private func client(
        to address: SocketAddress, _ change: (inout TrebuchetClient.Options) -> Void = { _ in }
    ) -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        options.reconnect.maximumDelay = .milliseconds(50)
        change(&options)
        return TrebuchetClient(transport: .webSocket(host: address.host, port: address.port), options: options)
    }

    private func withLedger(
        _ change: (inout TrebuchetClient.Options) -> Void = { _ in },
        _ body: (TrebuchetClient, FaultyLink, OnceWrittenNumbers) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
        let ledger = OnceWrittenNumbers(actorSystem: server.actorSystem)
        await server.expose(ledger, as: "ledger")
        let link = try FaultyLink(to: try await server.start(), seed: 1)
        let client = client(to: link.address, change)
        try await body(client, link, ledger)
        await client.close()
        await link.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a broken connection is published, and the value stays until a newer one arrives")
    func reconnection() async throws {
        try await withLedger { client, link, ledger in
            @ObservedActor("ledger", observe: \OnceWrittenNumbers.observeEntries, client: client) var entries
            let observer = $entries
            let pictures = Journal()
            let watch = Task {
                var last: ObservedStatus?
                for await picture in Observations({ self.picture(of: observer) }) where picture != last {
                    last = picture
                    pictures.record("\(picture.value.map { "\($0)" } ?? "-") connecting: \(picture.isConnecting)")
                    #expect(picture.error == nil)
                }
            }
            try await ledger.add(1)
            await pictures.wait(for: "[1] connecting: false")
            try await link.refuseConnections {
                await link.disconnectAll()
                await pictures.wait {
                    $0.contains("[1] connecting: false") && $0.last?.hasSuffix("connecting: true") == true
                }
                try await ledger.add(2)
                #expect(observer.value == [1])
            }
            await pictures.wait(for: "[1, 2] connecting: false")
            watch.cancel()
            await watch.value
            let values = pictures.entries.map { $0.prefix { $0 != "c" } }
            let first = try #require(values.firstIndex { $0 != "- " })
            #expect(
                values[first...].allSatisfy { $0 == "[1] " || $0 == "[1, 2] " || $0 == "[] " }, "\(pictures.entries)")
            #expect(observer.connectionState == .connected)
        }
    }

    @Test("a caller finds its change in the observed value when its call returns, also while the main actor is blocked")
    func ownWrite() async throws {
        try await withLedger { client, _, _ in
            @ObservedActor("ledger", observe: \OnceWrittenNumbers.observeEntries, client: client) var entries
            let observer = $entries
            await self.untilTrue { observer.value == [] }
            let remote = try client.resolve(OnceWrittenNumbers.self, id: "ledger")
            let missed = Mutex<[Int]>([])
            let isDone = Atomic(false)
            let calls = Task.detached {
                defer { isDone.store(true, ordering: .releasing) }
                for number in 1...100 {
                    try await remote.add(number)
                    if observer.value?.last != number { missed.withLock { $0.append(number) } }
                }
            }
            // The main actor is blocked meanwhile.
            while !isDone.load(ordering: .acquiring) { sched_yield() }
            try await calls.value
            #expect(missed.withLock { $0 } == [])
            // An observer that only awaits notifications is notified nevertheless.
            await self.untilTrue { observer.value?.count == 100 && !observer.isConnecting }
        }
    }

    @Test("a client that gave up is an error until it is connected again or retried")
    func failedConnection() async throws {
        for retries in [true, false] {
            try await withLedger({ $0.reconnect = .never }) { client, link, ledger in
                @ObservedActor("ledger", observe: \OnceWrittenNumbers.observeEntries, client: client) var entries
                let observer = $entries
                try await link.refuseConnections {
                    await self.untilTrue { observer.error != nil }
                    #expect(observer.error?.code == .unavailable)
                    #expect(!observer.isConnecting)
                    guard case .disconnected(.some) = observer.connectionState else {
                        Issue.record("\(observer.connectionState)")
                        return
                    }
                }
                try await ledger.add(1)
                if retries { observer.retry() } else { try await client.connect() }
                await self.untilTrue { observer.value == [1] }
                #expect(observer.error == nil)
                await link.disconnectAll()
                await self.untilTrue { observer.error != nil }
                #expect(observer.value == [1])
                try await ledger.add(2)
                if retries { observer.retry() } else { observer.connect(client) }
                await self.untilTrue { observer.value == [1, 2] }
            }
        }
    }

    @Test("an unauthenticated observer has an error; with another token retry() succeeds")
    func unauthenticated() async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0),
            access: AccessPolicy(authenticate: AccessPolicy.apiKeys(["right": Principal(id: "ada")])))
        await server.expose(OnceWrittenNumbers(actorSystem: server.actorSystem), as: "ledger")
        let tokens = Journal()
        let client = client(to: try await server.start()) { options in
            options.token = { tokens.entries.last ?? "wrong" }
        }
        @ObservedActor("ledger", observe: \OnceWrittenNumbers.observeEntries, client: client) var entries
        let observer = $entries
        await untilTrue { observer.error != nil }
        #expect(observer.error?.code == .unavailable)
        guard case .disconnected(let reason?) = observer.connectionState else {
            Issue.record("\(observer.connectionState)")
            return
        }
        #expect(reason.message.contains("401"), "\(reason)")
        tokens.record("right")
        observer.retry()
        await untilTrue { observer.value == [] }
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("when a server is killed and restarted, the value stays until the new server's value arrives")
    func killedServer() async throws {
        let port = Int.random(in: 20_000..<30_000)
        let first = try ChildProcess(ServeProcess.tool, ["serve", "--examples", "--port", "\(port)"])
        try #require(await first.nextLine()?.contains("\(port)") == true)
        let client = client(to: try #require(SocketAddress(literal: "127.0.0.1", port: port)))
        @ObservedActor("counter", observe: \Counter.observeState, client: client) var state
        let observer = $state
        await untilTrue { observer.value?.count == 0 }
        _ = try await observer.actor?.increment()
        await untilTrue { observer.value?.count == 1 }
        first.signal(9)
        _ = await first.finish()
        await untilTrue { observer.isConnecting }
        #expect(observer.value?.count == 1)
        #expect(observer.error == nil)
        let second = try ChildProcess(ServeProcess.tool, ["serve", "--examples", "--port", "\(port)"])
        try #require(await second.nextLine()?.contains("\(port)") == true)
        await untilTrue { observer.value?.count == 0 && !observer.isConnecting }
        _ = try await observer.actor?.increment()
        await untilTrue { observer.value?.count == 1 }
        await client.close()
        second.signal(15)
        _ = await second.finish()
    }
}
