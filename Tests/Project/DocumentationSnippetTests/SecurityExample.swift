import Foundation
import TestSupport
import Testing
import Trebuchet

// The code of Docs/Guides/Security.md.

@Trebuchet
distributed actor Guestbook {
    @StreamedState var entries: [String] = []

    distributed func sign(_ text: String) throws -> Int {
        guard let author = Caller.current?.principal?.id else { throw TrebuchetError(.unauthenticated, "no author") }
        entries.append("\(author): \(text)")
        return entries.count
    }
}

func serveGuestbook(port: Int) async throws -> TrebuchetServer {
    let keys = ["k-ada": Principal(id: "ada", roles: ["editor"]), "k-bob": Principal(id: "bob")]
    var access = AccessPolicy(authenticate: AccessPolicy.apiKeys(keys))
    access.authorize = { caller, actorID, target in
        target.hasPrefix("observe") || caller?.principal?.roles.contains("editor") == true
    }
    let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: port), access: access)
    await server.expose(Guestbook(actorSystem: server.actorSystem), as: "guestbook")
    try await server.start()
    return server
}

@Suite(.timeLimit(.minutes(5))) struct SecurityExample {
    @Test("an editor signs, another user may only observe, and a client without a key is rejected")
    func guestbook() async throws {
        let server = try await serveGuestbook(port: 0)
        let port = try #require(server.address?.port)
        let ada = try await connect(to: port, key: "k-ada")
        #expect(try await ada.resolve(Guestbook.self, id: "guestbook").sign("Hello") == 1)
        let bob = try await connect(to: port, key: "k-bob")
        let guestbook = try bob.resolve(Guestbook.self, id: "guestbook")
        let error = await #expect(throws: TrebuchetError.self) { _ = try await guestbook.sign("Hello") }
        #expect(error?.code == .unauthorized)
        for await entries in await guestbook.observeEntries() {
            #expect(entries == ["ada: Hello"])
            break
        }
        let rejection = await #expect(throws: TransportError.self) { _ = try await connect(to: port, key: "k-eve") }
        #expect(rejection?.code == .handshake)
        for client in [ada, bob] { await client.close() }
        await server.shutdown(drain: .zero)
    }

    @Test("the page shows the code that is tested here")
    func page() throws {
        let file = URL(filePath: #filePath)
        let root = packageRoot
        let page = try String(contentsOf: root.appending(path: "Docs/Guides/Security.md"), encoding: .utf8)
        let source = try String(contentsOf: file, encoding: .utf8)
        let block = try #require(page.firstMatch(of: /(?s)```swift\n(.*?)```/)).output.1
        #expect(source.contains(block), "\(block)")
    }
}
