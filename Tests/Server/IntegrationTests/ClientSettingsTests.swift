import Interop
import Networking
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The data that a client sends when it connects, and the ways to connect.
@Suite(.timeLimit(.minutes(5))) struct ClientSettingsTests {
    @Test("headers of the client are sent with its connection, beside its token", arguments: TestLink.allCases)
    func headers(link: TestLink) async throws {
        var options = TrebuchetClient.Options()
        options.headers = ["X-API-Key": "k3y", "X-Team": "red", "Authorization": "Bearer old"]
        options.token = { "new" }
        var access = AccessPolicy { request in
            guard request.headers["X-API-Key"] == "k3y", request.headers.values("Authorization") == ["Bearer new"]
            else {
                throw AccessDenied.unauthenticated("no key, or not the new token")
            }
            return Principal(id: request.headers["X-Team"] ?? "none")
        }
        access.identifiesCallers = true
        try await withTestServer(link: link, options: options, access: access) { server in
            await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "mirror")
        } body: { client, _ in
            let caller = try await client.resolve(CallerReportingActor.self, id: "mirror").caller()
            #expect(caller == "red")
        }
    }

    @Test(
        "the user cannot set headers of the handshake",
        arguments: ["Host", "sec-websocket-key", "UPGRADE", "a b", "x\r"])
    func reserved(name: String) async throws {
        let test = try await TestServer { _ in }
        var options = TrebuchetClient.Options()
        options.headers.add(name, "x")
        let error = await #expect(throws: TransportError.self) { try await test.connect(options) }
        #expect(error?.code == .handshake)
        #expect(error?.message.contains("header '\(name)'") == true, "\(error?.message ?? "")")
        await test.shutDown()
    }

    @Test("without a host, servers and clients use loopback; a port may be a UInt16")
    func defaultHost() async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0))
        #expect(server.status == .idle)
        let address = try await server.start()
        #expect(address.host == "127.0.0.1")
        #expect(server.status == .serving)
        let port = UInt16(address.port)
        let client = TrebuchetClient(transport: .webSocket(port: port))
        try await client.connect()
        await client.close()
        await server.shutdown(drain: .zero)
        #expect(server.status == .stopped)
    }

    @Test(
        "a URL names the server with path and query, and its scheme in any case",
        arguments: [("ws", "/real/time?x=1"), ("HTTP", "/real/time?x=1"), ("Ws", "")])
    func url(scheme: String, target: String) async throws {
        var access = AccessPolicy { Principal(id: $0.target) }
        access.identifiesCallers = true
        let test = try await TestServer(access: access) { server in
            await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "mirror")
        }
        let url = "\(scheme)://\(test.address)\(target)"
        let client = TrebuchetClient(transport: .webSocket(url: url))
        try await client.connect()
        #expect(
            try await client.resolve(CallerReportingActor.self, id: "mirror").caller()
                == (target.isEmpty ? "/" : target))
        await client.close()
        await test.shutDown()
    }

    @Test("an invalid URL is reported when the client connects", arguments: ["ftp://a", "ws://u:p@a", "ws://a/#b"])
    func badURL(url: String) async throws {
        let client = TrebuchetClient(transport: .webSocket(url: url))
        let error = await #expect(throws: TransportError.self) { try await client.connect() }
        #expect(error?.code == .addressInvalid)
        await client.close()
    }

    @Test(
        "a client that disconnects does not reconnect automatically, and connects again on request",
        arguments: TestLink.allCases)
    func disconnect(link: TestLink) async throws {
        try await withTestServer(link: link) { server in
            await server.expose(Counter(actorSystem: server.actorSystem), as: "counter")
        } body: { client, server in
            let counter = try client.resolve(Counter.self, id: "counter")
            let stream = await counter.observeState()
            var states = stream.makeAsyncIterator()
            #expect(await states.next()?.count == 0)
            await client.disconnect()
            #expect(client.connectionState.currentValue == .disconnected(nil))
            #expect(await states.next() == nil)
            #expect(stream.outcome?.error?.code == .unavailable)
            #expect(await eventually { await server.connectionCount == 0 })
            let error = await #expect(throws: TrebuchetError.self) { try await counter.increment() }
            #expect(error?.code == .unavailable)
            // There is no connection to end.
            await client.disconnect()
            try await client.connect()
            #expect(try await counter.increment() == 1)
            await client.close()
            await client.disconnect()
            #expect(client.connectionState.currentValue == .closed)
        }
    }
}

extension StreamOutcome {
    fileprivate var error: TrebuchetError? { if case .failed(let error) = self { error } else { nil } }
}
