import Trebuchet
import TrebuchetStore

/// The `main.swift` of Docs/Guides/Deployment.md; it is compiled, but not run: its file and its port are those of a real server.
func ownServer() async throws {
    let store = try await SQLiteStore.waitUntilAvailable(path: "/var/lib/trebuchet/trebuchet.db")
    var access = AccessPolicy(origins: ["https://app.example"])
    access.trustedProxies = ["127.0.0.1", "::1"]
    let server = TrebuchetServer(
        transport: .webSocket(host: "127.0.0.1", port: 8081), access: access, store: store)
    try await server.run()
    await store.close()
}
