import Relays
import Testing
import Trebuchet

/// Signs callers in, and records closed connections.
@Trebuchet
private distributed actor ConnectionReportingActor {
    private var handlers: [String: CallerConnection.CloseHandler] = [:]
    private let gone: StateRelay<[String]>

    init(gone: StateRelay<[String]>, actorSystem: TrebuchetActorSystem) {
        self.gone = gone
        self.actorSystem = actorSystem
    }

    distributed func signIn(as name: String) throws(NoCaller) {
        guard let connection = Caller.current?.connection else { throw NoCaller() }
        connection.principal = Principal(id: name)
        handlers[name] = connection.onClose { [gone] in gone.update { $0.append(name) } }
    }

    distributed func signOut() {
        guard let connection = Caller.current?.connection, let name = connection.principal?.id else { return }
        connection.principal = nil
        handlers.removeValue(forKey: name)?.cancel()
    }

    distributed func caller() -> String? { Caller.current?.principal?.id }
    distributed func isKnown() -> Bool { Caller.current != nil }
}

private struct NoCaller: Error, Codable {}

@Suite(.timeLimit(.minutes(5))) struct CallerConnectionTests {
    private let gone = StateRelay<[String]>([])

    private func withClients(
        _ access: AccessPolicy, local: Bool,
        _ body: (_ connect: () async throws -> TrebuchetClient) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, access: access)
        for name in ["one", "two"] {
            await server.expose(ConnectionReportingActor(gone: gone, actorSystem: server.actorSystem), as: name)
        }
        let address = try await server.start()
        let transport: TrebuchetTransport =
            local ? .local(server) : .webSocket(host: "127.0.0.1", port: address.port)
        do {
            try await body {
                let client = TrebuchetClient(transport: transport)
                try await client.connect()
                return client
            }
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    private var identifying: AccessPolicy {
        var access = AccessPolicy()
        access.identifiesCallers = true
        return access
    }

    @Test(
        "a principal that signs in over a connection is its caller from the next call on, on every reactor",
        arguments: [true, false])
    func principal(local: Bool) async throws {
        try await withClients(identifying, local: local) { connect in
            let ada = try await connect()
            let other = try await connect()
            for name in ["one", "two"] {
                let porter = try ada.resolve(ConnectionReportingActor.self, id: name)
                #expect(try await porter.caller() == nil)
                try await porter.signIn(as: "ada")
                #expect(try await porter.caller() == "ada")
                #expect(try await other.resolve(ConnectionReportingActor.self, id: name).caller() == nil)
                try await porter.signOut()
                #expect(try await porter.caller() == nil)
            }
            await ada.close()
            await other.close()
        }
    }

    @Test("the close of a connection is reported once, to the remaining handlers", arguments: [true, false])
    func close(local: Bool) async throws {
        try await withClients(identifying, local: local) { connect in
            let client = try await connect()
            let porter = try client.resolve(ConnectionReportingActor.self, id: "one")
            try await porter.signIn(as: "bob")
            try await porter.signOut()
            try await porter.signIn(as: "ada")
            try await client.resolve(ConnectionReportingActor.self, id: "two").signIn(as: "carol")
            #expect(gone.currentValue == [])
            await client.close()
            for await names in gone.stream where names.count == 2 { break }
            #expect(gone.currentValue == ["ada", "carol"])
        }
    }

    @Test("a server without authentication has no callers", arguments: [true, false])
    func unknown(local: Bool) async throws {
        try await withClients(.open, local: local) { connect in
            let client = try await connect()
            let porter = try client.resolve(ConnectionReportingActor.self, id: "one")
            #expect(try await porter.isKnown() == false)
            await #expect(throws: NoCaller.self) { try await porter.signIn(as: "ada") }
            await client.close()
        }
    }

    @Test("a client in the same process presents its token like one over the network")
    func localToken() async throws {
        let access = AccessPolicy(authenticate: AccessPolicy.apiKeys(["k": Principal(id: "ada")]))
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
        await server.expose(ConnectionReportingActor(gone: gone, actorSystem: server.actorSystem), as: "one")
        var options = TrebuchetClient.Options()
        options.token = { "k" }
        let ada = TrebuchetClient(transport: .local(server), options: options)
        try await ada.connect()
        #expect(try await ada.resolve(ConnectionReportingActor.self, id: "one").caller() == "ada")
        let nobody = TrebuchetClient(transport: .local(server))
        let error = await #expect(throws: TransportError.self) { try await nobody.connect() }
        #expect(error?.code == .handshake)
        await ada.close()
        await server.shutdown(drain: .zero)
    }
}
