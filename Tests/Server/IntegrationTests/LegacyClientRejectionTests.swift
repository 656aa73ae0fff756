import Foundation
import Interop
import Testing
import Trebuchet
import TrebuchetTesting

/// Rejections for clients of protocols 1 and 2: their stream readers accept only stream messages.
@Suite(.timeLimit(.minutes(5))) struct LegacyClientRejectionTests {
    private let clock = TestTime()

    private func withServer(
        limits: ServerLimits = ServerLimits(), access: AccessPolicy = .open,
        prepare: (TrebuchetServer) async -> Void = { _ in },
        _ body: (OldClient, TrebuchetServer) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0), clock: clock, limits: limits, access: access)
        await server.expose(Counter(actorSystem: server.actorSystem), as: "counter")
        await prepare(server)
        let client = OldClient(try await .connect(server.start(), subprotocols: []))
        try await body(client, server)
        client.peer.close()
        await server.shutdown(drain: .zero)
    }

    /// Requests a stream, which starts and ends with an error; returns its text.
    private func refusal(_ client: OldClient, _ request: String) async throws -> String {
        let sent = try OldMessage(request)
        let start = try await client.ask(request)
        #expect(start.kind == "streamStart", "\(request)")
        #expect(start.callID == sent.callID && start.target == sent.target && start.actor == sent.actor)
        let end = try await client.next { $0.streamID == start.streamID }
        #expect(end.kind == "streamError", "\(end)")
        let streamID = try #require(end.streamID)
        #expect(UUID(uuidString: streamID) != nil, "\(streamID)")
        return try #require(end.errorMessage)
    }

    @Test("an unknown stream is rejected as the client's original server rejected it")
    func recorded() async throws {
        try await withServer { client, _ in
            let exchange = try Exchange("refusals")
            let request = try #require(exchange.requests.first)
            let callID = try #require(try OldMessage(request).callID)
            let recorded = try #require(try exchange.answer(to: callID))
            #expect(recorded.kind == "streamStart")
            #expect(try await refusal(client, request).contains("observeNothing"))
        }
    }

    @Test("unknown streams and actors and invalid filters are rejected", arguments: [nil, 2])
    func unknown(version: Int?) async throws {
        let long = String(repeating: "x", count: 2_000)
        let filter = #","streamFilter":{"type":"predefined","name":"nonEmpty","parameters":{"field":"\#(long)"}}"#
        try await withServer { client, _ in
            for (actor, stream, more, text) in [
                ("counter", "observeNothing", "", "no method 'observeNothing'"),
                ("nobody", "observeState", "", "no actor 'nobody'"),
                ("counter", "observeState", filter, "1024"),
                ("counter", "observeState", #","streamFilter":[]"#, "streamFilter"),
            ] {
                let request = OldClient.invocation(actor, stream, more, version: version)
                let message = try await refusal(client, request)
                #expect(message.contains(text), "\(message)")
            }
            // The connection continues.
            #expect(try await client.call("counter", "increment()").errorMessage == nil)
        }
    }

    @Test("one stream too many and an unauthorized stream are rejected")
    func limits() async throws {
        var limits = ServerLimits()
        limits.streams.perConnection = 2
        let access = AccessPolicy(authorize: { _, actor, _ in actor != "secret" })
        try await withServer(limits: limits, access: access) { server in
            await server.expose(Counter(actorSystem: server.actorSystem), as: "secret")
        } _: { client, _ in
            for _ in 0..<2 { #expect(try await client.observe("counter", "observeState").kind == "streamStart") }
            let message = try await refusal(client, OldClient.invocation("counter", "observeState"))
            #expect(message.contains("streams.perConnection"), "\(message)")
            let secret = try await refusal(client, OldClient.invocation("secret", "observeState"))
            #expect(secret.contains("not allowed"), "\(secret)")
        }
    }

    @Test("replaced rules apply to the next call, and end unauthorized streams")
    func otherRules() async throws {
        let access = AccessPolicy(authorize: { _, _, target in target != "reset()" })
        try await withServer(access: access) { client, server in
            #expect(try await client.call("counter", "reset()").errorMessage?.contains("not allowed") == true)
            let start = try await client.observe("counter", "observeState")
            #expect(start.kind == "streamStart")
            #expect(try await client.call("counter", "increment()").errorMessage == nil)
            await server.replaceAuthorization { _, _, _ in false }
            let end = try await client.next { $0.kind == "streamError" && $0.streamID == start.streamID }
            #expect(end.errorMessage?.contains("not allowed") == true)
            #expect(try await client.call("counter", "increment()").errorMessage?.contains("not allowed") == true)
        }
    }

    @Test("a stream of an actor that is not activated in time, or at all, is rejected")
    func onDemand() async throws {
        var limits = ServerLimits()
        limits.calls.perConnection = 1
        // The peer does not use the test's clock, and could answer too late.
        limits.connections.pingInterval = nil
        try await withServer(limits: limits) { server in
            let system = server.actorSystem
            server.expose(Counter.self, as: "none/*") { _ in throw TrebuchetError(.unavailable, "closed today") }
            server.expose(Counter.self, as: "never/*") { _ in
                let (nothing, end) = AsyncStream<Void>.makeStream()
                for await _ in nothing {}
                end.finish()
                return Counter(actorSystem: system)
            }
        } _: { client, _ in
            #expect(try await refusal(client, OldClient.invocation("none/1", "observeState")) == "closed today")
            // The first one waits, so the second exceeds the limit.
            let slow = OldClient.invocation("never/1", "observeState")
            client.peer.send(slow)
            let full = try await refusal(client, OldClient.invocation("never/2", "observeState"))
            #expect(full.contains("calls.perConnection"), "\(full)")
            await clock.advance(by: ServerLimits().calls.timeout)
            let callID = try OldMessage(slow).callID
            let start = try await client.next { $0.callID == callID }
            #expect(start.kind == "streamStart")
            #expect(try await client.next { $0.streamID == start.streamID }.kind == "streamError")
        }
    }

    @Test("a stream that cannot be resumed ends")
    func resumption() async throws {
        try await withServer { client, _ in
            let answer = try await client.ask(
                #"{"type":"streamResume","payload":{"streamID":"4CA0E376-CBCE-4B93-B1BB-1F0B755BBF4F","lastSequence":4,"#
                    + #""targetIdentifier":"observeState","actorID":{"id":"nobody","host":"127.0.0.1","port":1}}}"#)
            #expect(answer.kind == "streamError")
            #expect(answer.errorMessage?.contains("nobody") == true)
        }
    }

    @Test("in version 3 a rejected stream is a failed call")
    func version3() async throws {
        try await withServer { _, server in
            let peer = try await RawPeer.connect(#require(server.address))
            peer.send(
                #"{"type":"invocation","payload":{"callID":"a","actorID":"counter","targetIdentifier":"observeNothing"}}"#
            )
            let answer = try #require(await peer.nextText())
            #expect(answer.contains(#"{"type":"response","payload":{"callID":"a","error":{"code":"methodNotFound""#))
            peer.close()
        }
    }

    // MARK: Messages

    @Test("an argument of 800 KiB is accepted, as in version 3")
    func largeArgument() async throws {
        try await withServer { client, _ in
            let text = "\"" + String(repeating: "m", count: 800 << 10) + "\""
            let answer = try await client.call("counter", "add(_:)", text)
            // It was decoded: a text is not a number.
            #expect(answer.errorMessage?.contains("argument 1") == true, "\(answer.errorMessage ?? "")")
        }
    }

    @Test("a malformed message is answered with a kind and an identifier that its client can read")
    func malformed() async throws {
        try await withServer { client, _ in
            for text in [
                "{", #"{"type":"nonsense","payload":{}}"#,
                #"{"type":"streamData","payload":{"streamID":"1","sequenceNumber":1,"data":""}}"#,
            ] {
                client.peer.send(text)
                let answer = try await client.next { _ in true }
                #expect(answer.kind == "response" && answer.errorMessage?.isEmpty == false, "\(answer)")
                #expect(answer.callID.flatMap(UUID.init(uuidString:)) != nil, "\(answer)")
            }
            // A call with the callID of an in-flight call is malformed as well.
            #expect(try await client.call("counter", "increment()").errorMessage == nil)
        }
    }
}
