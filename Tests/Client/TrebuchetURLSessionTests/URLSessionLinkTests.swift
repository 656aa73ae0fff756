import Foundation
import FoundationNetworking
import SharedModel
import TestSupport
import Testing
import Transports
import Trebuchet

@testable import TrebuchetClient
@testable import TrebuchetURLSession

/// `URLSessionTransport` over another task type: Foundation's is not available everywhere.
private struct SocketTransport: ClientTransport {
    let address: String
    var isDeaf = false

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        let upgrade = try request.upgrade(to: address)
        let link = URLSessionLink(receiver, request, address)
        try await link.open { SocketTask(upgrade, $0, isDeaf: isDeaf) }
    }
}

@Suite(.timeLimit(.minutes(5))) struct URLSessionLinkTests {
    private func withServer(
        limits: ServerLimits = ServerLimits(), access: AccessPolicy? = nil, _ body: (String) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(transport: .webSocket(port: 0), limits: limits, access: access ?? AccessPolicy())
        await server.expose(Auction(actorSystem: server.actorSystem), as: "auction")
        let port = try await server.start().port
        try await body("ws://127.0.0.1:\(port)/")
        await server.shutdown(drain: .zero)
    }

    private func withAuction(
        _ options: TrebuchetClient.Options = .init(), limits: ServerLimits = ServerLimits(), isDeaf: Bool = false,
        _ body: (TrebuchetClient, Auction) async throws -> Void
    ) async throws {
        try await withServer(limits: limits) { address in
            let transport: any ClientTransport = SocketTransport(address: address, isDeaf: isDeaf)
            let client = TrebuchetClient(transport: transport, options: options)
            try await client.connect()
            try await body(client, try client.resolve(Auction.self, id: "auction"))
            await client.close()
        }
    }

    @Test("calls, states and events work on a Dispatch queue")
    func calls() async throws {
        try await withAuction { client, auction in
            #expect(client.core.loop is DispatchLoop)
            try await auction.offer("Chair", as: "chair")
            var sales = await auction.observeSale().makeAsyncIterator()
            var calls = await auction.observeCalls().makeAsyncIterator()
            #expect(await sales.next()?.lots["chair"]?.price == 0)
            #expect(try await auction.raise("chair", by: 5, for: "ada") == 5)
            #expect(await sales.next()?.lots["chair"]?.price == 5)
            #expect(try await calls.next() == "ada: 5")
        }
    }

    @Test("the connection's name is available, so calls can be repeated")
    func session() async throws {
        try await withAuction { client, _ in
            let name = await client.core.loop.perform { client.core.link?.callSession }
            #expect(name?.isEmpty == false)
        }
    }

    @Test("messages sent before the close arrive")
    func closing() async throws {
        try await withServer { address in
            let first = TrebuchetClient(transport: SocketTransport(address: address))
            try await first.connect()
            let auction = try first.resolve(Auction.self, id: "auction")
            async let offered: Void = auction.offer("Chair", as: "chair")
            _ = try? await offered
            await first.close()
            let second = TrebuchetClient(transport: SocketTransport(address: address))
            try await second.connect()
            let same = try second.resolve(Auction.self, id: "auction")
            var sales = await same.observeSale().makeAsyncIterator()
            #expect(await sales.next()?.lots["chair"]?.title == "Chair")
            await second.close()
        }
    }

    @Test("a message over the server's limit fails alone, and is not sent again")
    func tooLarge() async throws {
        var limits = ServerLimits()
        limits.messages.inboundBytes = 4_096
        try await withAuction(limits: limits) { _, auction in
            let error = await #expect(throws: TrebuchetError.self) {
                try await auction.offer(String(repeating: "x", count: 10_000), as: "chair")
            }
            #expect(error?.code == .invalidArguments)
            try await auction.offer("Chair", as: "chair")
        }
    }

    @Test("a silent server is disconnected")
    func silence() async throws {
        var options = TrebuchetClient.Options()
        options.pingInterval = .milliseconds(20)
        options.pongTimeout = .milliseconds(20)
        options.reconnect = .never
        try await withAuction(options, isDeaf: true) { client, _ in
            for await state in client.connectionState.stream {
                guard case .disconnected(let error?) = state else { continue }
                #expect(error.code == .timedOut)
                break
            }
        }
    }

    @Test("a connection that answers pings stays open without messages")
    func quiet() async throws {
        var options = TrebuchetClient.Options()
        options.pingInterval = .milliseconds(5)
        options.pongTimeout = .seconds(20)
        try await withAuction(options) { client, auction in
            for number in 1...20 {
                try await auction.offer("\(number)", as: "chair")
            }
            #expect(client.connectionState.currentValue == .connected)
        }
    }

    @Test("without a listener, and at a rejection, the error says so")
    func refusals() async throws {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        let nobody = TrebuchetClient(
            transport: SocketTransport(address: "ws://127.0.0.1:1/"), options: options)
        let refused = await #expect(throws: TransportError.self) { try await nobody.connect() }
        #expect(refused?.code == .refused)
        await nobody.close()

        let access = AccessPolicy(authenticate: AccessPolicy.apiKeys(["k3y": Principal(id: "ada")]))
        try await withServer(access: access) { address in
            let stranger = TrebuchetClient(
                transport: SocketTransport(address: address), options: options)
            let error = await #expect(throws: TransportError.self) { try await stranger.connect() }
            #expect(error?.code == .handshake)
            #expect((error?.cause as? UnexpectedHTTPStatus)?.status == 401)
            await stranger.close()
        }
    }

    @Test("an invalid server address is reported")
    func address() async throws {
        var options = TrebuchetClient.Options()
        options.reconnect = .never
        for address in ["", "nowhere", "ftp://example.com", "wss://", "wss://ada:secret@example.com", "wss://a.b/#c"] {
            let client = TrebuchetClient(
                transport: URLSessionTransport(address), options: options)
            let error = await #expect(throws: TransportError.self) { try await client.connect() }
            #expect(error?.code == .addressInvalid, "\(address)")
            #expect(error?.message.contains("secret") == false)
            await client.close()
        }
    }

    @Test("the request has the client's headers, its subprotocol and its timeout")
    func upgrade() async throws {
        var options = TrebuchetClient.Options()
        options.token = { "secret" }
        options.connectTimeout = .seconds(7)
        let request = try await ConnectionRequest(options).upgrade(to: "wss://example.com:8443/live")
        #expect(request.url?.absoluteString == "wss://example.com:8443/live")
        #expect(request.value(forHTTPHeaderField: "Sec-WebSocket-Protocol") == "trebuchet.v3")
        #expect(request.value(forHTTPHeaderField: "Authorization") == "Bearer secret")
        #expect(request.value(forHTTPHeaderField: "Trebuchet-Message-Size") == String(options.messageSize))
        #expect(request.timeoutInterval == 7)
        for (address, url) in [
            ("HTTPS://example.com/live?a=b", "wss://example.com/live?a=b"), ("http://example.com", "ws://example.com"),
            ("WS://example.com:81", "ws://example.com:81"),
        ] {
            #expect(try await ConnectionRequest(options).upgrade(to: address).url?.absoluteString == url)
        }
    }

    @Test(
        "Foundation's errors map to those of all transports",
        arguments: [
            (URLError.Code.timedOut, TransportError.Code.timedOut), (.cannotConnectToHost, .refused),
            (.cannotFindHost, .addressInvalid), (.serverCertificateUntrusted, .tls), (.badServerResponse, .handshake),
            (.networkConnectionLost, .closed), (.unknown, .system),
        ])
    func errors(_ code: URLError.Code, _ expected: TransportError.Code) {
        let error = TransportError.ofOpening(status: nil, URLError(code), "wss://example.com")
        #expect(error.code == expected)
        #expect(error.message.hasPrefix("wss://example.com cannot be reached"))
    }

    @Test("a close frame for an oversized message is reported with its cause, others by their code")
    func closeFrames() {
        let refusal = TransportError.ofClosing((1009, ""), nil, "wss://example.com")
        #expect(refusal.code == .closed && refusal.cause is MessageTooLarge)
        let leaving = TransportError.ofClosing((1001, "restart"), nil, "wss://example.com")
        #expect(leaving.cause == nil)
        #expect(leaving.message == "the connection to wss://example.com was closed (1001: restart)")
        let broken = TransportError.ofClosing((0, ""), URLError(.networkConnectionLost), "wss://example.com")
        #expect(broken.message.hasPrefix("the connection to wss://example.com was lost"))
    }
}
