import Loading
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

@Suite(.timeLimit(.minutes(5))) @MainActor struct RemoteLoadingTests {
    @Test("a loader around a distributed call shows loading, another attempt after unavailable, and the value")
    func retryOnUnavailable() async throws {
        try await withTestServer { server in
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let address = try #require(server.address)
            let client = TrebuchetClient(transport: .webSocket(host: address.host, port: address.port))
            let board = try client.resolve(SizedStateActor.self, id: "board")
            var attempts = 0
            var failures: [TrebuchetError.Code] = []
            let loader = RetryableLoader(
                wrapping: BlockLoadable {
                    attempts += 1
                    // The first attempt finds no connection.
                    if attempts == 2 { try await client.connect() }
                    return try await board.add()
                },
                backoff: RetryBackoff(first: .milliseconds(1)),
                shouldRetry: { error in
                    guard let error = error as? TrebuchetError else { return false }
                    failures.append(error.code)
                    return error.code == .unavailable
                })
            var seen: [LoadingState<Int>] = []
            let states = loader.state
            let observer = Task {
                for await state in states { seen.append(state) }
            }
            #expect(await eventually { seen == [.idle] })
            await loader.load()
            let retrying = LoadingState<Int>.loading(LoadingProgress(message: "Retrying… (attempt 2 of 3)"))
            #expect(await eventually { seen.last == .loaded(1) })
            #expect(seen == [.idle, .loading(nil), retrying, .loaded(1)])
            #expect(failures == [.unavailable])
            observer.cancel()
            await client.close()
        }
    }
}
