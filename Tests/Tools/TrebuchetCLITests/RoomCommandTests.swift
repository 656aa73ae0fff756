import Foundation
import TestSupport
import Testing

/// The commands of rooms and topics, each in a separate process.
@Suite(.timeLimit(.minutes(5))) struct RoomCommandTests {
    @Test("two processes see each other join and leave, and one receives events published by a third")
    func rooms() async throws {
        let server = try await ServeProcess(arguments: ["--services", "rooms"])
        let ada = try ChildProcess(
            ServeProcess.tool, ["presence", "join", "--url", server.url, "chat", "lobby", #"{"name":"Ada"}"#])
        #expect(await ada.nextLine() == #"{"peers":[]}"#)
        let bob = try ChildProcess(
            ServeProcess.tool, ["presence", "join", "--url", server.url, "chat", "lobby", #"{"name":"Bob"}"#])
        #expect(await bob.nextLine()?.contains(#""data":{"name":"Ada"}"#) == true)
        #expect(await ada.nextLine()?.contains(#""data":{"name":"Bob"}"#) == true)
        try bob.send("what is no JSON is left out")
        try bob.send(#"{"name":"Bob","typing":true}"#)
        #expect(await ada.nextLine()?.contains(#""data":{"name":"Bob","typing":true}}"#) == true)
        let listener = try ChildProcess(
            ServeProcess.tool, ["topic", "subscribe", "--url", server.url, "chat", "lobby", "emoji", "--count", "1"],
            error: .merged)
        #expect(await listener.nextLine() == "trebuchet topic subscribe: joined")
        let publisher = try await ChildProcess(
            ServeProcess.tool, ["topic", "publish", "--url", server.url, "chat", "lobby", "emoji", #"{"name":"tada"}"#]
        ).finish()
        #expect(publisher.status == 0)
        let received = await listener.finish()
        #expect(received.status == 0)
        #expect(received.output.contains(#"","data":{"name":"tada"}}"#))
        bob.signal(SIGINT)
        #expect(await bob.finish().status == 0)
        #expect(
            await ada.nextLine() == #"{"peers":[]}"#, "a leaving member disappears before the reconnect time has passed"
        )
        ada.signal(SIGTERM)
        #expect(await ada.finish().status == 0)
        #expect(await server.stop() == 0)
    }

    @Test("invalid JSON and an unknown service are usage errors with advice")
    func wrongUse() async throws {
        let event = try await ChildProcess(
            ServeProcess.tool, ["topic", "publish", "chat", "lobby", "emoji", "tada"], error: .captured
        ).finish()
        #expect(event.status == 2 && event.error.contains("'\"tada\"'"))
        let service = try await ChildProcess(
            ServeProcess.tool, ["serve", "--services", "room"], error: .captured
        ).finish()
        #expect(service.status == 2 && service.error.contains("did you mean 'rooms'?"))
    }
}
