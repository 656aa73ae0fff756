import Testing
import WebSockets

/// The names that a user's file with no other import can use: all types in the module's own declarations.
@Suite struct OneImportTests {
    private func connect(
        _ headers: HTTPHeaders, _ trust: TLSClientSettings, _ group: ReactorGroup
    ) async throws(TransportError) -> WebSocket? {
        do {
            return try await WebSocketClient.connect(
                to: "ws://127.0.0.1:1/", headers: headers, tls: trust, reactors: group
            ) { _ in EchoHandler() }
        } catch let error as TransportError {
            throw error.cause is UnexpectedHTTPStatus ? TransportError(.closed, "not a WebSocket") : error
        } catch {
            return nil
        }
    }

    @Test("types of the lower modules are visible through WebSockets")
    func names() async throws {
        let group = try ReactorGroup.clients()
        let reactor: Reactor = group.reactors[0]
        #expect(reactor.name.hasPrefix("client"))
        let identity: TLSServerSettings? = nil
        let server = try WebSocketServer(port: 0, tls: identity) { _ in .accept(EchoHandler()) }
        let address: SocketAddress = server.address
        #expect(address.port > 0)
        await server.shutdown()
        let error = await #expect(throws: TransportError.self) {
            _ = try await connect(["X-Name": "ada"], TLSClientSettings(), group)
        }
        #expect(error?.code == .refused)
    }
}
