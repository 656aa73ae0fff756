// swift-format-ignore-file
import Testing
import Trebuchet
import TrebuchetTesting

@testable import ChatWeb

@Test("recorded calls of chat")
func chatCalls() async throws {
    let recorded = RecordedState()
    try await withTestServer { server in
        let actor = Chat(actorSystem: server.actorSystem)
        _ = try await actor.whenLocal { actor in
            actor.messages = try recorded(#"[]"#)
            actor.people = try recorded(#"[]"#)
        }
        await server.expose(actor, as: "chat")
    } body: { client, _ in
        let actor = try client.resolve(Chat.self, id: "chat")
        _ = try await actor.enter(id: recorded(#""852A860E-BCCF-4558-9514-30FB457D8488""#), name: recorded(#""Ada""#))
        _ = try await actor.point(id: recorded(#""852A860E-BCCF-4558-9514-30FB457D8488""#), to: recorded(#"{"x":0.25,"y":0.5}"#))
        _ = try await actor.say(recorded(#""Hello""#), id: recorded(#""852A860E-BCCF-4558-9514-30FB457D8488""#), name: recorded(#""Ada""#))
        await #expect(throws: (any Error).self) { _ = try await actor.say(recorded(#"" ""#), id: recorded(#""852A860E-BCCF-4558-9514-30FB457D8488""#), name: recorded(#""Ada""#)) }
        _ = try await actor.point(id: recorded(#""852A860E-BCCF-4558-9514-30FB457D8488""#), to: nil)
        #expect(await recorded.matches(#"[{"id":"8EF9CC55-CFEC-4125-930A-796D801FB060","author":"852A860E-BCCF-4558-9514-30FB457D8488","name":"Ada","text":"Hello","date":"2026-11-27T09:30:56.510Z"}]"#, in: actor.observeMessages()))
        #expect(await recorded.matches(#"[{"id":"852A860E-BCCF-4558-9514-30FB457D8488","name":"Ada"}]"#, in: actor.observePeople()))
    }
}
