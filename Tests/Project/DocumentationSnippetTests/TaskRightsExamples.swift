// The code of Docs/Guides/HowTo.md for authorization data that changes.

import Synchronization
import Trebuchet

func serveWithRights(_ access: AccessPolicy, _ rights: Rights) async throws -> TrebuchetServer {
    var access = access
    access.authorize = { caller, actorID, target in rights.has(caller?.principal?.id, actorID, target) }
    access.cachesGrants = true
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
    await server.expose(Vault(actorSystem: server.actorSystem), as: "vault")
    try await server.start()
    return server
}

/// Authorization data that changes while the server runs.
final class Rights: Sendable {
    private let keepers = Mutex<Set<String>>([])

    func has(_ caller: String?, _ actorID: String, _ target: String) -> Bool {
        keepers.withLock { caller.map($0.contains) ?? false }
    }

    func change(_ keepers: Set<String>, at server: TrebuchetServer) {
        self.keepers.withLock { $0 = keepers }
        server.invalidateAuthorizationCache()
    }
}
