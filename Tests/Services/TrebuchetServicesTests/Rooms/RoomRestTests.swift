import Synchronization
import TestSupport
import Testing
import TrebuchetTesting

@testable import Networking
@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient
@testable import TrebuchetServices

@Suite(.timeLimit(.minutes(5))) struct RoomRestTests {
    @Test("while a room waits for a lost guest to return the server is idle")
    func rests() async throws {
        var access = AccessPolicy.open
        access.identifiesCallers = true
        // On reactors that no other test uses.
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), clock: TestTime(), access: access)
        var limits = RoomLimits()
        limits.reconnectTime = .seconds(600)
        let host = RoomHost.expose(on: server, rules: OpenRooms(), limits: limits)
        let address = try await server.start()
        let guest = RoomTestClient(TrebuchetClient(transport: .webSocket(host: address.host, port: address.port)))
        try await guest.client.connect()
        _ = try await guest.room().join(presence: .integer(1), token: nil, attempt: nil)
        await guest.client.close()
        #expect(await eventually { await server.connectionCount == 0 })
        let reactors = server.shards.map(\.reactor)
        let isAtRest = await eventually {
            let before = reactors.map { $0.pulse.load(ordering: .sequentiallyConsistent) }
            let begun = ContinuousClock.now
            while ContinuousClock.now - begun < .milliseconds(20) {}
            return !before.contains { Reactor.isWorking($0) }
                && before == reactors.map { $0.pulse.load(ordering: .sequentiallyConsistent) }
        }
        #expect(isAtRest)
        #expect(host.roomCount == 1)
        await server.shutdown(drain: .zero)
    }
}
