import Synchronization
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// Every rejection is reported to the event handlers.
@Suite(.timeLimit(.minutes(5))) struct RejectionEventTests {
    private final class RejectionRecorder: ServerEventHandler {
        let kinds: ServerEvent.Kinds = .calls
        let rejections = Mutex<[String]>([])

        func handle(_ event: ServerEvent) {
            guard case .callRejected(_, let actor, let target, let error, _) = event else { return }
            rejections.withLock { $0.append("\(error) \(actor) \(target)") }
        }
    }

    @Test(
        "malformed messages, failed streams and unrepeatable calls are reported",
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
    func reportedRejections(message: String, wanted: String) async throws {
        let refusals = RejectionRecorder()
        try await withTestServer { server in
            server.addEventHandler(refusals)
            await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        } body: { _, server in
            let peer = try await RawPeer.connect(#require(server.address), subprotocols: ["trebuchet.v3"])
            peer.send(message)
            let answer = await peer.nextText()
            #expect(refusals.rejections.withLock { $0 } == [wanted], "\(answer ?? "-")")
            peer.close()
        }
    }

    private final class Requests: ServerEventHandler {
        let kinds: ServerEvent.Kinds = .rejections
        let rejections = Journal()

        func handle(_ event: ServerEvent) {
            if case .connectionRejected(_, let status, let reason) = event { rejections.record("\(status) \(reason)") }
        }
    }

    @Test(
        "unknown paths, unsupported methods, missing upgrades and incomplete request heads are reported",
        arguments: [
            ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", true, "404 page not found"),
            ("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", true, "405 only GET is supported"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", false, "426 this is a WebSocket endpoint, version 13"),
            ("GET / HT", true, "408 the handshake took too long"),
            (
                "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", true,
                "403 origin 'null' is not allowed, only the server's own origin 'localhost'; pages without an origin, such as local files, require all origins: AccessPolicy.origins = [\"*\"], or serve --origins '*'"
            ),
        ])
    func requests(text: String, hasPages: Bool, wanted: String) async throws {
        let (requests, clock) = (Requests(), TestTime())
        try await withTestServer(clock: clock) { server in
            server.addEventHandler(requests)
            if hasPages { server.servePages(.clientLibrary) }
        } body: { _, server in
            let peer = PlainSocket(try #require(server.address))
            defer { peer.close(reset: false) }
            peer.send(Array(text.utf8))
            let isReported = await eventually {
                if wanted.hasPrefix("408") { await clock.advance(by: .seconds(1)) }
                return !requests.rejections.entries.isEmpty
            }
            #expect(isReported && requests.rejections.entries == [wanted])
        }
    }
}
