import Foundation
import TestSupport
import Testing
import Trebuchet
import TrebuchetServices

/// Docs/Reference/ServicesProtocol.md, and a Python client that was written from it.
@Suite(.timeLimit(.minutes(5))) struct ServicesPageTests {
    private static let page =
        packageRoot
        .appendingPathComponent("Docs/Reference/ServicesProtocol.md")

    @Test("the server accepts, or sends, each message exactly as the page shows it")
    func exchanges() async throws {
        let host = try await ServicesHost()
        try await PythonPeer(services: "page", [Self.page.path, host.url, host.mails.path]).expectOK()
        await host.stop()
    }

    @Test(
        "an incorrect page is detected: another value, a missing member, another order, a missing message",
        arguments: [
            (#""wrongCode":{"triesLeft":4}},"message""#, #""wrongCode":{"triesLeft":3}},"message""#),
            (#"},"refreshToken":"Zq3x…""#, "}"),
            (#"arguments":[[{"number""#, #"argument":[[{"number""#),
            (#"{"op":"replace","path":"/members/2/data/at/x","value":2},"#, ""),
            ("    Bob < {\"type\":\"response\",\"payload\":{\"callID\":\"3\",\"result\":1}}\n", ""),
            (
                #""session":"1b2h…","token":"2qvt…","events":{"epoch":"0uy4…","last":0}"#,
                #""session":"1b2h…","token":"1b2h…","events":{"epoch":"0uy4…","last":0}"#
            ),
        ])
    func misspelledTarget(right: String, wrong: String) async throws {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let place = try #require(text.range(of: right), "the page does not have \(right)")
        let host = try await ServicesHost()
        let page = host.mails.appendingPathComponent("page.md")
        try text.replacingCharacters(in: place, with: wrong).write(to: page, atomically: true, encoding: .utf8)
        let outcome = try await PythonPeer(services: "page", [page.path, host.url, host.mails.path]).finish()
        #expect(outcome.status == 1)
        #expect(outcome.output.hasPrefix("line ") || outcome.output.hasPrefix("the page "), "\(outcome.output)")
        await host.stop()
    }

    @Test("a Python client signs in, joins rooms, receives missed events, writes documents and reconnects")
    func client() async throws {
        let host = try await ServicesHost()
        try await PythonPeer(services: "scenario", [host.url, host.mails.path]).expectOK()
        await host.stop()
    }

    // MARK: Errors

    @Test("the tables of errors have each case once, in the JSON that is sent")
    func errors() throws {
        try check(AuthError.self, "AuthError", in: "Auth", heading: "### Errors of sign-in")
        try check(RoomError.self, "RoomError", in: "Rooms", heading: "### Errors of rooms")
        try check(CollectionError.self, "CollectionError", in: "Collections", heading: "### Errors of collections")
    }

    private func check<Failure: Error & Codable & Hashable>(
        _ type: Failure.Type, _ name: String, in folder: String, heading: String
    ) throws {
        let text = try String(contentsOf: Self.page, encoding: .utf8)
        let start = try #require(text.range(of: heading)?.upperBound)
        let section = text[start...].prefix(upTo: text[start...].range(of: "\n## ")?.lowerBound ?? text.endIndex)
        var shown: [String] = []
        for match in section.matches(of: /`(\{"(\w+)":\{.*?\}\})`/) {
            let data = Data(String(match.1).utf8)
            let failure = try JSONDecoder().decode(Failure.self, from: data)
            let again = try JSONSerialization.jsonObject(with: JSONEncoder().encode(failure)) as? NSDictionary
            #expect(again == (try JSONSerialization.jsonObject(with: data) as? NSDictionary), "\(match.1)")
            shown.append(String(match.2))
        }
        #expect(Set(shown).count == shown.count)
        let paragraphs = section.components(separatedBy: "\n\n").map { $0.trimmingCharacters(in: .newlines) }
        let paragraph = try #require(paragraphs.last { $0.hasSuffix("are never sent.") })
        let unsent = paragraph.matches(of: /`(\w+)`/).map { String($0.1) }
        let source = Self.page.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources/Services/TrebuchetServicesModel/\(folder)/\(name).swift")
        let cases = try String(contentsOf: source, encoding: .utf8).matches(of: /\n    case (\w+)/).map { String($0.1) }
        #expect(cases.count > 5)
        #expect((shown + unsent).sorted() == cases.sorted(), "\(name)")
    }
}

/// A server with all services in this process, and a folder with the mailed codes.
private struct ServicesHost {
    /// Every signed-in principal may list rooms.
    private struct Rules: RoomRules {
        func canJoin(_ principal: Principal?, _ room: String) -> Bool { true }
        func canList(_ principal: Principal?, _ room: String) -> Bool { principal != nil }
    }

    let url: String
    let mails: URL
    private let server: TrebuchetServer

    init() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        mails = folder
        let accounts = try await Accounts(
            mailer: ClosureMailer { code, address in
                try code.write(to: folder.appendingPathComponent(address), atomically: true, encoding: .utf8)
            })
        var access = accounts.accessPolicy
        access.identifiesCallers = true
        server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0), access: access)
        await server.expose(AuthService(accounts, actorSystem: server.actorSystem), as: AuthService.name)
        RoomHost.expose(on: server, rules: Rules())
        CollectionHost.expose(on: server)
        let address = try await server.start()
        url = "ws://\(address.host):\(address.port)"
    }

    func stop() async {
        await server.shutdown(drain: .zero)
        try? FileManager.default.removeItem(at: mails)
    }
}
