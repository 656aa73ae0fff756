import Networking
import Synchronization
import Testing
import Trebuchet
import TrebuchetTesting

/// Signs callers in over their existing connection.
@Trebuchet
distributed actor AuthorizationTestActor {
    distributed func become(_ name: String) { Caller.current?.connection.principal = Principal(id: name) }
    distributed func pass() -> String? { Caller.current?.principal?.id }
}

extension AccessTests {
    @Test("a cached grant does not apply to another principal that signs in over the same connection")
    func grantsOfOthers() async throws {
        var access = AccessPolicy(authenticate: Self.keys)
        access.authorize = { caller, _, target in target == "become(_:)" || caller?.principal?.id == "ada" }
        access.cachesGrants = true
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
        await server.expose(AuthorizationTestActor(actorSystem: server.actorSystem), as: "turnstile")
        let address = try await server.start()
        let client = try await connect(address, token: "ada-key")
        let turnstile = try client.resolve(AuthorizationTestActor.self, id: "turnstile")
        #expect(try await turnstile.pass() == "ada")
        #expect(try await turnstile.pass() == "ada")
        try await turnstile.become("bob")
        let error = await #expect(throws: TrebuchetError.self) { try await turnstile.pass() }
        #expect(error?.code == .unauthorized)
        await client.close()
        await server.shutdown(drain: .zero)
    }

    @Test("a cached grant is not checked again until the rules or the principal change")
    func cachedGrants() async throws {
        let asked = Mutex<[String]>([])
        let isLetIn = Mutex(true)
        func newRequests() -> [String] {
            asked.withLock { asked in
                defer { asked = [] }; return asked
            }
        }
        let server = Mutex<TrebuchetServer?>(nil)
        var access = AccessPolicy(authenticate: Self.keys)
        access.authorize = { caller, actorID, target in
            asked.withLock { $0.append("\(caller?.principal?.id ?? "") \(actorID) \(target)") }
            return isLetIn.withLock { $0 }
        }
        access.cachesGrants = true
        try await withServer(
            access,
            {
                let own = $0
                server.withLock { $0 = own }
            }
        ) { address in
            let ada = try await connect(address, token: "ada-key")
            let bob = try await connect(address, token: "bob-key")
            let one = try ada.resolve(CallerReportingActor.self, id: "one")
            for _ in 0..<3 { _ = try await one.bump() }
            #expect(newRequests() == ["ada one bump()"])
            #expect(try await one.callerLater() == "ada")
            #expect(try await one.callerLater() == "ada")
            _ = try await ada.resolve(CallerReportingActor.self, id: "two").bump()
            _ = try await bob.resolve(CallerReportingActor.self, id: "one").bump()
            for _ in 0..<2 {
                for await _ in await one.observeCount() { break }
            }
            #expect(
                newRequests() == ["ada one callerLater()", "ada two bump()", "bob one bump()", "ada one observeCount"])

            isLetIn.withLock { $0 = false }
            _ = try await one.bump()
            #expect(newRequests() == [], "a grant is valid until the rules change")
            server.withLock { $0 }?.invalidateAuthorizationCache()
            for _ in 0..<2 { await #expect(throws: TrebuchetError.self) { try await one.bump() } }
            #expect(newRequests() == ["ada one bump()", "ada one bump()"], "a rejection is not cached")
            isLetIn.withLock { $0 = true }
            for _ in 0..<2 { _ = try await one.bump() }
            #expect(newRequests() == ["ada one bump()"])
            for client in [ada, bob] { await client.close() }
        }
        server.withLock { $0 = nil }
    }
}
