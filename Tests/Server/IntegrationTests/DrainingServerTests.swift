import Networking
import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Replacement of a server by another one loses nothing.
@Suite(.timeLimit(.minutes(5))) struct DrainingServerTests {
    /// Callers that continue until the test stops them.
    private final class Callers: Sendable {
        private struct State {
            var isStopping = false
            var answered: Set<Int> = []
            var failures: [String] = []
            var last = 0
        }

        private let state = Mutex(State())

        var failures: [String] { state.withLock { $0.failures } }
        var answered: Set<Int> { state.withLock { $0.answered } }
        func stop() { state.withLock { $0.isStopping = true } }

        func run(_ ledger: OnceWrittenNumbers, count: Int) async {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<count { group.addTask { await self.call(ledger) } }
            }
        }

        /// Starts a stream and ends it after the first value.
        private func readFirstValue(_ ledger: OnceWrittenNumbers) async throws {
            for await _ in await ledger.observeEntries() { return }
            throw NoValue()
        }

        private func call(_ ledger: OnceWrittenNumbers) async {
            while true {
                let next: Int? = state.withLock { state in
                    guard !state.isStopping else { return nil }
                    state.last += 1
                    return state.last
                }
                guard let next else { return }
                do {
                    if next % 5 == 0 { try await readFirstValue(ledger) }
                    try await ledger.add(next)
                    state.withLock { _ = $0.answered.insert(next) }
                } catch {
                    state.withLock { $0.failures.append("\(next): \(error)") }
                }
            }
        }
    }

    private struct NoValue: Error {}

    private func server(port: Int, reactors: Int) async throws -> (TrebuchetServer, SocketAddress, OnceWrittenNumbers) {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port), reactors: reactors)
        let ledger = OnceWrittenNumbers(actorSystem: server.actorSystem)
        await server.expose(ledger, as: "ledger")
        return (server, try await server.start(), ledger)
    }

    @Test(
        "continuous callers receive all responses when one server replaces another, each from one of them",
        arguments: [1, 2])
    func callers(reactors: Int) async throws {
        var (server, address, ledger) = try await server(port: 0, reactors: reactors)
        // Reserved: another test could otherwise get a port on which no server listens.
        let port = PortReservation(address)
        defer { withExtendedLifetime(port) {} }
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(5)
        // A link with enough latency that a call is always in transit.
        var faults = FaultyLink.Faults.none
        faults.delay = .milliseconds(3)...(.milliseconds(3))
        let link = try FaultyLink(to: address, seed: 1, faults: faults)
        let client = TrebuchetClient(
            transport: .webSocket(host: "127.0.0.1", port: link.address.port), options: options)
        try await client.connect()
        let remote = try client.resolve(OnceWrittenNumbers.self, id: "ledger")
        let callers = Callers()
        let run = Task { await callers.run(remote, count: 8) }
        var done: [Int] = []
        for _ in 0..<3 {
            let before = callers.answered.count
            #expect(await eventually { callers.answered.count > before + 20 })
            await server.shutdown(drain: .seconds(10))
            done += try await ledger.all()
            (server, _, ledger) = try await self.server(port: address.port, reactors: reactors)
        }
        let before = callers.answered.count
        #expect(await eventually { callers.answered.count > before + 20 })
        callers.stop()
        await run.value
        done += try await ledger.all()
        #expect(callers.failures == [])
        #expect(done.count == Set(done).count, "a call has run twice")
        #expect(Set(done) == callers.answered)
        await client.close()
        await link.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a peer that does not acknowledge the close delays the shutdown only briefly")
    func unresponsiveClient() async throws {
        let (server, address, _) = try await server(port: 0, reactors: 1)
        let peer = try await RawPeer.connect(address)
        await peer.pauseReading()
        let start = ContinuousClock.now
        await server.shutdown(drain: .seconds(60))
        #expect(ContinuousClock.now - start < .seconds(30))
        peer.abort()
    }
}
