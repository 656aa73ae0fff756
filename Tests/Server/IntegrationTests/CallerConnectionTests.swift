import Relays
import Testing
import Transports
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

    /// Returns when the connection begins no more calls.
    distributed func revoke() async {
        Caller.current?.connection.revokeAccess("the session has ended")
        await Caller.current?.connection.authorizationApplied()
    }

    distributed func signOut() {
        guard let connection = Caller.current?.connection, let name = connection.principal?.id else { return }
        connection.principal = nil
        handlers.removeValue(forKey: name)?.cancel()
    }

    distributed func caller() -> String? { Caller.current?.principal?.id }
    @Idempotent
    distributed func callerOnce() -> String? { Caller.current?.principal?.id }
    /// Returns the caller after the log has this entry.
    distributed func caller(after entry: String) async -> String? {
        gone.update { $0.append("called") }
        for await entries in gone.stream where entries.contains(entry) { break }
        return Caller.current?.principal?.id
    }
    distributed func isKnown() -> Bool { Caller.current != nil }
}

private struct NoCaller: Error, Codable {}

@Suite(.timeLimit(.minutes(5))) struct CallerConnectionTests {
    private let gone = StateRelay<[String]>([])

    private func withServer(
        _ access: AccessPolicy, _ body: (TrebuchetServer, SocketAddress) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, access: access)
        let (gone, system) = (gone, server.actorSystem)
        server.expose(ConnectionReportingActor.self, as: "later/*") { _ in
            gone.update { $0.append("activating") }
            for await entries in gone.stream where entries.contains("go") { break }
            return ConnectionReportingActor(gone: gone, actorSystem: system)
        }
        for name in ["one", "two"] {
            await server.expose(ConnectionReportingActor(gone: gone, actorSystem: server.actorSystem), as: name)
        }
        let address = try await server.start()
        do {
            try await body(server, address)
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    private func withClients(
        _ access: AccessPolicy, local: Bool,
        _ body: (_ connect: () async throws -> TrebuchetClient) async throws -> Void
    ) async throws {
        try await withServer(access) { server, address in
            let transport: TrebuchetTransport =
                local ? .local(server) : .webSocket(host: "127.0.0.1", port: address.port)
            try await body {
                let client = TrebuchetClient(transport: transport)
                try await client.connect()
                return client
            }
        }
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

    @Test(
        "a call that waits for an activation does not start after its principal has left the connection",
        arguments: [true, false])
    func replaced(local: Bool) async throws {
        for successor in ["bob", nil] {
            gone.update { $0 = [] }
            try await withClients(identifying, local: local) { connect in
                let client = try await connect()
                let porter = try client.resolve(ConnectionReportingActor.self, id: "one")
                try await porter.signIn(as: "ada")
                let later = try client.resolve(ConnectionReportingActor.self, id: "later/1")
                let call = Task { try await later.caller() }
                for await entries in gone.stream where entries.contains("activating") { break }
                if let successor { try await porter.signIn(as: successor) } else { try await porter.signOut() }
                gone.update { $0.append("go") }
                let error = await #expect(throws: TrebuchetError.self) { try await call.value }
                #expect(error?.code == .unauthenticated)
                #expect(try await later.caller() == successor)
                await client.close()
            }
        }
    }

    @Test(
        "a call that waits for an activation keeps its caller: nobody, or the principal that is still signed in",
        arguments: [true, false], [nil, "ada"] as [String?])
    func waiting(local: Bool, principal: String?) async throws {
        try await withClients(identifying, local: local) { connect in
            let client = try await connect()
            let porter = try client.resolve(ConnectionReportingActor.self, id: "two")
            if let principal { try await porter.signIn(as: principal) }
            let later = try client.resolve(ConnectionReportingActor.self, id: "later/1")
            let call = Task { try await later.caller() }
            for await entries in gone.stream where entries.contains("activating") { break }
            try await porter.signIn(as: "ada")
            gone.update { $0.append("go") }
            #expect(try await call.value == principal)
            #expect(try await later.caller() == "ada")
            await client.close()
        }
    }

    @Test("an idempotent call that waits when its principal leaves is not executed: its repeat is")
    func replacedOnce() async throws {
        try await withServer(identifying) { _, address in
            func signedIn() async throws -> RawPeer {
                let peer = try await RawPeer.connect(address)
                peer.invoke("1", "one", "signIn(as:)", #"["ada"]"#)
                #expect(try await peer.next()?.payload.error == nil)
                return peer
            }
            let first = try await signedIn()
            first.call("2", "later/1", "callerOnce()")
            for await entries in gone.stream where entries.contains("activating") { break }
            first.invoke("3", "one", "signOut()")
            #expect(try await first.next()?.payload.error == nil)
            gone.update { $0.append("go") }
            #expect(try await first.next()?.payload.error?.code == "unauthenticated")
            let second = try await signedIn()
            second.call("2", "later/1", "callerOnce()", of: first.session)
            let text = await second.nextText()
            #expect(text?.contains(#""result":"ada""#) == true, "\(text ?? "")")
            second.close()
        }
    }

    @Test("rules that are replaced while a call waits for an activation decide on it again", arguments: [true, false])
    func replacedRules(isAllowed: Bool) async throws {
        let decisions = StateRelay<[String]>([])
        let access = AccessPolicy(authorize: { _, actor, _ in
            decisions.update { $0.append(actor) }
            return true
        })
        try await withServer(access) { server, address in
            let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: address.port))
            try await client.connect()
            let later = try client.resolve(ConnectionReportingActor.self, id: "later/1")
            let call = Task { try await later.isKnown() }
            for await entries in gone.stream where entries.contains("activating") { break }
            await server.replaceAuthorization { _, actor, _ in
                decisions.update { $0.append("\(actor) again") }
                return isAllowed
            }
            gone.update { $0.append("go") }
            do {
                _ = try await call.value
                #expect(isAllowed)
            } catch let error as TrebuchetError {
                #expect(!isAllowed && error.code == .unauthenticated)
            }
            #expect(decisions.currentValue == ["later/1", "later/1 again"])
            await client.close()
        }
    }

    @Test("rules that stay the same decide once on a call that waits for an activation")
    func sameRules() async throws {
        let decisions = StateRelay<[String]>([])
        let access = AccessPolicy(authorize: { _, actor, _ in
            decisions.update { $0.append(actor) }
            return true
        })
        try await withServer(access) { server, address in
            let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: address.port))
            try await client.connect()
            let later = try client.resolve(ConnectionReportingActor.self, id: "later/1")
            let call = Task { try await later.isKnown() }
            for await entries in gone.stream where entries.contains("activating") { break }
            gone.update { $0.append("go") }
            _ = try await call.value
            #expect(decisions.currentValue == ["later/1"])
            await client.close()
        }
    }

    @Test(
        "a method that is suspended keeps its caller while another principal signs in", arguments: [true, false],
        ["one", "two"])
    func suspended(local: Bool, name: String) async throws {
        try await withClients(identifying, local: local) { connect in
            let client = try await connect()
            let porter = try client.resolve(ConnectionReportingActor.self, id: name)
            try await porter.signIn(as: "ada")
            let call = Task { try await porter.caller(after: "go") }
            for await entries in gone.stream where entries.contains("called") { break }
            try await porter.signIn(as: "bob")
            gone.update { $0.append("go") }
            #expect(try await call.value == "ada")
            #expect(try await porter.caller() == "bob")
            await client.close()
        }
    }

    @Test("a revocation refuses a call that waits for an activation", arguments: [true, false])
    func revoked(local: Bool) async throws {
        try await withClients(identifying, local: local) { connect in
            let client = try await connect()
            let porter = try client.resolve(ConnectionReportingActor.self, id: "one")
            try await porter.signIn(as: "ada")
            let later = try client.resolve(ConnectionReportingActor.self, id: "later/1")
            let call = Task { try await later.caller() }
            for await entries in gone.stream where entries.contains("activating") { break }
            try await porter.revoke()
            gone.update { $0.append("go") }
            let error = await #expect(throws: TrebuchetError.self) { try await call.value }
            #expect(error?.code == .unauthenticated)
            await client.close()
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
