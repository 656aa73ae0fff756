import Platform
import Synchronization
import TestSupport
import Testing
import Trebuchet

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Reports its thread, and blocks it.
@Trebuchet
private distributed actor Bridge {
    private let journal: Journal
    private let gate: ThreadSemaphore

    init(journal: Journal, gate: ThreadSemaphore, actorSystem: TrebuchetActorSystem) {
        self.journal = journal
        self.gate = gate
        self.actorSystem = actorSystem
    }

    distributed func enter() -> String {
        Caller.current?.connection.principal = Principal(id: "ada")
        return "\(pthread_self())"
    }

    distributed func block() {
        journal.record("blocked")
        gate.wait()
    }

    distributed func cross() { journal.record("crossed") }
}

/// Records the last connection, and the thread that admits each call.
private final class Gatekeeper: AdmissionInterceptor {
    let journal: Journal
    let last = Mutex<(connection: CallerConnection?, thread: String)>((nil, ""))

    init(_ journal: Journal) { self.journal = journal }

    func admit(_ request: ServerRequest) {
        last.withLock { $0 = (request.caller?.connection, "\(pthread_self())") }
        journal.record("admitted \(request.target)")
    }
}

/// Calls that were admitted and wait for an actor of another reactor.
@Suite(.timeLimit(.minutes(5))) struct AdmittedCallsTests {
    @Test("they do not start after their connection was revoked or its principal has left", arguments: [true, false])
    func refused(isRevocation: Bool) async throws {
        let (journal, gate) = (Journal(), ThreadSemaphore())
        let gatekeeper = Gatekeeper(journal)
        var access = AccessPolicy()
        access.identifiesCallers = true
        access.interceptors = [gatekeeper]
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, access: access)
        await server.expose(Bridge(journal: journal, gate: gate, actorSystem: server.actorSystem), as: "bridge")
        let address = try await server.start()
        while true {
            let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: address.port))
            try await client.connect()
            let bridge = try client.resolve(Bridge.self, id: "bridge")
            let thread = try await bridge.enter()
            let (connection, admitting) = gatekeeper.last.withLock { $0 }
            guard thread != admitting, let connection else {
                await client.close()
                continue
            }
            let blocking = Task { try await bridge.block() }
            await journal.wait(for: "blocked")
            let waiting = Task { try await bridge.cross() }
            await journal.wait(for: "admitted cross()")
            // The end of the turn in which it was admitted and sent to the actor's reactor.
            await connection.authorizationApplied()
            if isRevocation { connection.revokeAccess("the session has ended") } else { connection.principal = nil }
            await connection.authorizationApplied()
            gate.signal()
            let error = await #expect(throws: TrebuchetError.self) { try await waiting.value }
            #expect(error?.code == .unauthenticated)
            _ = await blocking.result
            #expect(!journal.entries.contains("crossed"))
            await client.close()
            break
        }
        await server.shutdown(drain: .zero)
    }
}
