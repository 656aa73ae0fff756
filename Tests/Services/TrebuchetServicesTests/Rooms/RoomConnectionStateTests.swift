import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite(.timeLimit(.minutes(5))) struct RoomConnectionStateTests {
    @Test("a connection's joins are rate limited over all rooms, and a refusal has the time to wait")
    func rates() async throws {
        var limits = RoomLimits()
        limits.joinsPerConnection = RateLimit(callsPerSecond: 0.01, burst: 3)
        try await RoomTestEnvironment.run(limits) { environment in
            let eve = environment.guest()
            try await eve.client.connect()
            for number in 1...3 { _ = try await eve.room("\(number)").join(presence: nil, token: nil, attempt: nil) }
            let fourth = try eve.room("4")
            let error = await #expect(throws: RoomError.self) {
                try await fourth.join(presence: nil, token: nil, attempt: nil)
            }
            guard case .rateLimited(let milliseconds)? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect((90_000...100_000).contains(milliseconds))
            let other = environment.guest()
            try await other.client.connect()
            _ = try await other.room("1").join(presence: nil, token: nil, attempt: nil)
        }
    }
}
