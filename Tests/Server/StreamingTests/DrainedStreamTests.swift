import Networking
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Streams of a client that receives a goAway just after it has connected.
@Suite(.timeLimit(.minutes(5))) struct DrainedStreamTests {
    /// The goAway of a server, to a client that resumes its stream before it receives the message.
    private static let farewell = #"{"type":"goAway","payload":{"reason":"draining","reconnectAfterMilliseconds":0}}"#
    private static let refusal =
        #"{"type":"streamError","payload":{"streamID":"s1","errorMessage":"the server is shutting down","code":"unavailable"}}"#

    @Test(
        "a stream refused by a draining server continues over the next connection; otherwise it ends",
        arguments: [true, false])
    func refused(isSentAway: Bool) async throws {
        try await withTestServer { server in
            await server.expose(TodoList(actorSystem: server.actorSystem), as: "todos")
        } body: { client, _ in
            let list = try client.resolve(TodoList.self, id: "todos")
            let stream = await list.observeState()
            var states = stream.makeAsyncIterator()
            #expect(await states.next()?.items == [])
            let core = client.core
            await core.loop.perform {
                for text in (isSentAway ? [Self.farewell] : []) + [Self.refusal] {
                    Array(text.utf8).withUnsafeBytes { core.receive($0, over: core.linkNumber) }
                }
            }
            guard isSentAway else {
                #expect(await states.next() == nil)
                return
            }
            _ = try await list.add(title: "first")
            #expect(await states.next()?.items == ["first"])
            #expect(stream.outcome == nil)
        }
    }
}
