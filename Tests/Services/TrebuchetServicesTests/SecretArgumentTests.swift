import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetActors
import TrebuchetTesting

@testable import TrebuchetServices

/// Arguments of the services that confer a right on their holder are hidden from the inspector.
@MainActor @Suite(.timeLimit(.minutes(5))) struct SecretArgumentTests {
    private static let secret = "a-secret-of-28-bytes-4711-xy"

    private final class Calls: ServerEventHandler {
        let kinds: ServerEvent.Kinds = [.calls, .arguments]
        let ended = Mutex<[ServerEvent.Call]>([])

        func handle(_ event: ServerEvent) {
            if case .callEnded(let call, _, _) = event { ended.withLock { $0.append(call) } }
        }
    }

    private func expectRedacted(_ calls: Calls, _ methods: [String]) {
        let ended = calls.ended.withLock { $0 }
        #expect(ended.map(\.method) == methods)
        #expect(ended.allSatisfy { $0.arguments == .redacted }, "\(ended)")
    }

    @Test("the inspector shows neither membership tokens nor join attempts")
    func rooms() async throws {
        try await RoomTestEnvironment.run { environment in
            let calls = Calls()
            environment.server.addEventHandler(calls)
            let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: environment.address.port))
            try await client.connect()
            let room = try RoomTestClient(client).room()
            let ticket = try await room.join(presence: nil, token: nil, attempt: Self.secret)
            try await room.leave(token: ticket.token)
            await client.close()
            expectRedacted(calls, ["join(presence:token:attempt:)", "leave(token:)"])
        }
    }

    @Test("the inspector shows no secrets of clients of collections")
    func collections() async throws {
        try await CollectionTestEnvironment.run { environment in
            let calls = Calls()
            environment.server.addEventHandler(calls)
            let ada = environment.guest("ada")
            try await ada.client.connect()
            _ = try await ada.collection().commit([] as [EncodedJSON], from: Self.secret)
            _ = try await ada.collection().commit([] as [EncodedJSON], from: Self.secret, as: "ada")
            expectRedacted(calls, ["commit(_:from:)", "commit(_:from:as:)"])
        }
    }
}
