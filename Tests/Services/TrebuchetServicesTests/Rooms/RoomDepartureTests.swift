import Relays
import SharedState
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// Clients that leave rooms, are removed from them, or may not join them yet.
@Suite("Clients that leave rooms", .timeLimit(.minutes(5))) struct RoomDepartureTests {
    @Test("a client leaves all of its rooms at once, including those shown by values")
    func leavesAll() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest(), environment.guest())
            let lobbies = (ada.presence("Ada"), bob.presence("Bob"))
            let (hall, emoji) = (ada.presence("Ada", in: "hall"), ada.emoji(in: "hall"))
            await wait(for: lobbies.0) { $0.peers.count == 1 }
            await wait(for: hall) { $0.isConnected }
            await wait(for: emoji) { $0.isConnected }
            await ada.backend.leaveAllRooms(timeout: .seconds(600))
            await wait(for: lobbies.1) { $0.peers.isEmpty }
            #expect(await eventually { environment.host.room("chat-hall") == nil })
            for shown in [lobbies.0, hall] {
                await wait(for: shown) { $0.error as? RoomError == .left && !$0.isConnected && $0.peers.isEmpty }
            }
            await #expect(throws: RoomError.left) { try await hall.update { $0.isTyping = true } }
            await #expect(throws: RoomError.notJoined) { try await emoji.publish(Emoji(name: "tada")) }
            // A new value joins again.
            let again = RoomTestClient(ada.backend)
            let back = again.presence("Ada")
            await wait(for: lobbies.1) { $0.peers.count == 1 }
            await wait(for: back) { $0.isConnected && $0.error == nil }
            _ = (lobbies, hall, emoji)
        }
    }

    @Test("a kicked member is notified with the duration, and sees no other members")
    func kicked() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest(), environment.guest())
            let (adas, bobs) = (ada.presence("Ada"), bob.presence("Bob"))
            await wait(for: adas) { $0.peers.count == 1 }
            await wait(for: bobs) { $0.peers.count == 1 }
            let stay = try #require(bobs.wrappedValue.peers.first?.id)
            #expect(await environment.host.kick(stay, from: "chat-lobby", for: .seconds(600)))
            await wait(for: adas) { presence in
                guard case .kicked(let left)? = presence.error as? RoomError else { return false }
                return (1...600_000).contains(left) && presence.peers.isEmpty && !presence.isConnected
            }
            await wait(for: bobs) { $0.peers.isEmpty }
        }
    }

    @Test("a kicked member joins again when the time is over, with a new membership")
    func back() async throws {
        try await RoomTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest(), environment.guest())
            let (adas, bobs) = (ada.presence("Ada"), bob.presence("Bob"))
            await wait(for: bobs) { $0.peers.count == 1 }
            let stay = try #require(bobs.wrappedValue.peers.first?.id)
            // The state in between may not be observed.
            #expect(await environment.host.kick(stay, from: "chat-lobby", for: .milliseconds(200)))
            await wait(for: bobs) { $0.peers.count == 1 && $0.peers.first?.id != stay }
            await wait(for: adas) { $0.error == nil && $0.peers.count == 1 && $0.isConnected }
        }
    }

    @Test("a plan joins again when the time of its kick is over, regardless of earlier failures")
    func plan() {
        var plan = RoomPlan()
        plan.users = 1
        plan.connected()
        for _ in 0..<9 { _ = plan.failed(.join(presence: nil, token: nil), with: RoomError.roomFull(limit: 1)) }
        let error = RoomError.kicked(retryAfterMilliseconds: 4_000)
        #expect(plan.failed(.join(presence: nil, token: nil), with: error) == .milliseconds(4_000))
        #expect(plan.error as? RoomError == error && plan.next(hasEvents: true) == .wait)
        plan.retry()
        #expect(plan.next(hasEvents: true) == .join(presence: nil, token: nil))
    }

    /// Accepts only signed-in users, and counts refusals.
    private final class UsersOnly: RoomRules {
        let refused = StateRelay(0)

        func canJoin(_ principal: Principal?, _ room: String) -> Bool {
            if principal == nil { refused.update { $0 += 1 } }
            return principal != nil
        }
        func canList(_ principal: Principal?, _ room: String) -> Bool { false }
    }

    @Test("a client that is signing in does not fail in a room for users only, and joins immediately afterwards")
    func signingIn() async throws {
        let (auth, rules) = (try await AuthServer(), UsersOnly())
        RoomHost.expose(on: auth.server, rules: rules)
        let ada = RoomTestClient(auth.backend())
        auth.part.update(.paused)
        let signingIn = Task { try await ada.backend.session.signInAsGuest() }
        for await state in ada.client.connectionState.stream where state == .connected { break }
        let presence = ada.presence("Ada")
        let errors = Task {
            var errors: [String] = []
            for await value in presence.updates {
                if let error = value.error { errors.append("\(error)") }
                if value.isConnected { break }
            }
            return errors
        }
        for await count in rules.refused.stream where count > 0 { break }
        // The response to this call follows the refusal on the connection.
        _ = try? await ada.room().leave(token: nil)
        auth.part.update(.working)
        _ = try await signingIn.value
        #expect(await errors.value == [])
        #expect(rules.refused.currentValue == 1)
        await auth.stop()
    }
}
