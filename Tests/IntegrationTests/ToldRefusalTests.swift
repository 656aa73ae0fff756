import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Whatever a client is refused, who listens is told.
@Suite(.timeLimit(.minutes(1))) struct ToldRefusalTests {
    private final class Refusals: ServerListener {
        let kinds: ServerEvent.Kinds = .calls
        let told = Mutex<[String]>([])

        func hear(_ event: ServerEvent) {
            guard case .callRefused(_, let actor, let target, let error, _) = event else { return }
            told.withLock { $0.append("\(error) \(actor) \(target)") }
        }
    }

    @Test(
        "messages that are none, streams that do not begin, calls that cannot be repeated",
        arguments: [
            (#"{"type":"invocation","payload":{"callID":"1","actorID":{"id":"board"}}}"#, "malformedEnvelope  "),
            (#"{"type":"nothing"}"#, "malformedEnvelope  "),
            ("no JSON", "malformedEnvelope  "),
            (
                #"{"type":"streamResume","payload":{"streamID":"s1","callID":"1","actorID":{"id":"board"},"targetIdentifier":"observeNothing","arguments":[]}}"#,
                "methodNotFound board observeNothing"
            ),
            (
                #"{"type":"repeat","payload":{"callID":"1","session":"y","actorID":{"id":"none"},"targetIdentifier":"f()","arguments":[]}}"#,
                "unknownOutcome none f()"
            ),
        ])
    func told(message: String, wanted: String) async throws {
        let refusals = Refusals()
        try await withTestServer { server in
            server.addListener(refusals)
            await server.expose(Board(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let peer = try await RawPeer.connect(#require(server.address), subprotocols: ["trebuchet.v3"])
            peer.send(message)
            let answer = await peer.nextText()
            #expect(refusals.told.withLock { $0 } == [wanted], "\(answer ?? "-")")
            peer.close()
        }
    }
}
