import Foundation
import Glibc
import Networking
import TestSupport
import Testing
import TrebuchetTesting

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Pages of a server, from a folder and from memory, over real sockets.
@Suite(.timeLimit(.minutes(5))) struct PageRouterTests {
    private func withServer(
        _ sources: [PageSource], limits: ServerLimits = ServerLimits(), access: AccessPolicy = .open,
        schema: TrebuchetServer.SchemaReaders? = nil, _ body: (TrebuchetServer, SocketAddress) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(
            transport: .webSocket(host: "127.0.0.1", port: 0), reactors: 2, limits: limits, access: access)
        await server.expose(CallerReportingActor(actorSystem: server.actorSystem), as: "mirror")
        server.servePages(sources)
        if let schema { server.serveSchema(to: schema) }
        let address = try await server.start()
        do {
            try await body(server, address)
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    private func makeFolder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try folder.write("index.html", "<p>root</p>".utf8)
        try folder.write("app/index.html", "<p>app</p>".utf8)
        try folder.write("app/main.js", "export {}\n".utf8)
        try folder.write("empty.txt", "".utf8)
        try folder.write("with space ü.txt", "named".utf8)
        try folder.write("bare/file", "x".utf8)
        try folder.write(".env", "secret".utf8)
        try folder.write("app/.git/config", "secret".utf8)
        return folder
    }

    @Test("files, folders, types and versions are served over one connection")
    func files() async throws {
        let folder = try makeFolder()
        try await withServer([try .folder(folder.path)]) { _, address in
            let client = try PageClient(address)
            let root = try await client.get("/")
            #expect(root.status == 200 && root.text == "<p>root</p>")
            #expect(root.fields["content-type"] == "text/html; charset=utf-8")
            #expect(root.fields["x-content-type-options"] == "nosniff")
            #expect(root.fields["cache-control"] == "no-cache")
            #expect(root.fields["last-modified"]?.hasSuffix(" GMT") == true)
            let script = try await client.get("/app/main.js?version=1")
            #expect(script.text == "export {}\n" && script.fields["content-type"] == "text/javascript; charset=utf-8")
            #expect(try await client.get("/with%20space%20%C3%BC.txt").text == "named")
            let empty = try await client.get("/empty.txt")
            #expect(empty.status == 200 && empty.fields["content-length"] == "0")
            let head = try await client.get("/app/main.js", method: "HEAD")
            #expect(head.status == 200 && head.fields["content-length"] == "10")
            let redirect = try await client.get("/app?x=1")
            #expect(redirect.status == 301 && redirect.fields["location"] == "/app/?x=1")
            #expect(try await client.get("/app/").text == "<p>app</p>")
            for path in [
                "/nothing", "/bare/", "/index.html/", "/bare/file/x", "/\(String(repeating: "x", count: 300))",
            ] {
                let reply = try await client.get(path)
                #expect(reply.status == 404 && reply.text == "page not found\n", "\(path)")
            }
            #expect(try await client.get("/%zz").status == 400)
            // Asks for a newer version.
            let tag = try #require(script.fields["etag"])
            let same = try await client.get("/app/main.js", ["If-None-Match": tag])
            #expect(same.status == 304 && same.fields["etag"] == tag && same.fields["content-length"] == nil)
            try folder.write("app/main.js", "export {1}".utf8)
            let newer = try await client.get("/app/main.js", ["If-None-Match": tag])
            #expect(newer.status == 200 && newer.text == "export {1}" && newer.fields["etag"] != tag)
            #expect(try await client.get("/app/main.js", method: "DELETE").status == 405)
        }
        try await withServer([try .folder(folder.path)]) { _, address in
            let reply = try await PageClient(address).get("/\(String(repeating: "x", count: 9_000))")
            #expect(reply.status == 414 && reply.text.hasPrefix("first line is over 8192 bytes"))
        }
    }

    @Test("no path leads out of the folder, to hidden files or to special files")
    func outside() async throws {
        let folder = try makeFolder()
        let other = try TemporaryFolder()
        try other.write("secret.txt", "secret".utf8)
        try folder.link("out.txt", to: other.path + "/secret.txt")
        try folder.link("outside", to: other.path)
        try folder.link("up", to: "..")
        try folder.link("sly", to: "../\(URL(fileURLWithPath: other.path).lastPathComponent)/secret.txt")
        try folder.link("dotted", to: ".env")
        try folder.link("loop", to: "loop")
        try folder.link("device", to: "/dev/zero")
        try folder.link("process", to: "/proc/self/environ")
        try folder.link("inside.html", to: "index.html")
        #expect(mkfifo(folder.path + "/fifo", 0o600) == 0)
        // A folder whose name starts with the name of the served one.
        let sibling = folder.path + "-beside"
        try FileManager.default.createDirectory(atPath: sibling, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: sibling) }
        try Data("secret".utf8).write(to: URL(fileURLWithPath: sibling + "/x.txt"))
        try folder.link("beside", to: sibling)
        let name = URL(fileURLWithPath: other.path).lastPathComponent
        try await withServer([try .folder(folder.path)]) { _, address in
            let client = try PageClient(address)
            for path in [
                "/out.txt", "/outside/secret.txt", "/outside", "/outside/", "/up/\(name)/secret.txt", "/up", "/sly",
                "/loop", "/device", "/process", "/fifo", "/beside/x.txt", "/../\(name)/secret.txt",
                "/%2e%2e/\(name)/secret.txt", "/..%2f\(name)/secret.txt", "/..%5c\(name)%5csecret.txt",
                "/app/../../\(name)/secret.txt", "/.env", "/%2eenv", "/app/.git/config", "/app/.git/",
                "/index.html%00.txt",
                "/\(other.path)/secret.txt", "//\(name)/secret.txt", "/.", "/./index.html",
            ] {
                let reply = try await client.get(path)
                #expect(reply.status == 404 && !reply.text.contains("secret"), "\(path)")
            }
            #expect(try await client.get("/inside.html").text == "<p>root</p>")
            // A hidden file stays hidden behind a link with another name.
            #expect(try await client.get("/dotted").status == 404)
        }
        try await withServer([try .folder(folder.path, showsDotFiles: true)]) { _, address in
            let client = try PageClient(address)
            #expect(try await client.get("/.env").text == "secret")
            #expect(try await client.get("/../\(name)/secret.txt").status == 404)
        }
    }

    @Test("a Kubernetes volume with links through a hidden folder is served, also after a change")
    func mountedVolume() async throws {
        let folder = try TemporaryFolder()
        try folder.write("..2026_05_01/index.html", "<p>one</p>".utf8)
        try folder.write("..2026_05_01/app/main.js", "export {}".utf8)
        try folder.write("..2026_05_02/index.html", "<p>two</p>".utf8)
        try folder.link("..data", to: "..2026_05_01")
        try folder.link("index.html", to: "..data/index.html")
        try folder.link("app", to: "..data/app")
        try await withServer([try .folder(folder.path)]) { _, address in
            let client = try PageClient(address)
            #expect(try await client.get("/").text == "<p>one</p>")
            #expect(try await client.get("/index.html").text == "<p>one</p>")
            #expect(try await client.get("/app/main.js").text == "export {}")
            for path in ["/..data/index.html", "/..2026_05_01/index.html"] {
                #expect(try await client.get(path).status == 404, "\(path)")
            }
            try folder.link("..data_tmp", to: "..2026_05_02")
            #expect(rename(folder.path + "/..data_tmp", folder.path + "/..data") == 0)
            #expect(try await client.get("/").text == "<p>two</p>")
        }
    }

    @Test("/.well-known is served, at the root of the server alone, and nothing hidden below it")
    func wellKnown() async throws {
        let folder = try TemporaryFolder()
        try folder.write(".well-known/acme-challenge/t0k-en_", "key".utf8)
        try folder.write(".well-known/apple-app-site-association", "{}".utf8)
        try folder.write(".well-known/.env", "secret".utf8)
        try folder.write("app/.well-known/x", "secret".utf8)
        try await withServer([try .folder(folder.path), try .folder(folder.path, at: "/sub")]) { _, address in
            let client = try PageClient(address)
            #expect(try await client.get("/.well-known/acme-challenge/t0k-en_").text == "key")
            let association = try await client.get("/.well-known/apple-app-site-association")
            #expect(association.text == "{}")
            #expect(association.fields["content-type"] == "application/json; charset=utf-8")
            for path in ["/.well-known/.env", "/app/.well-known/x", "/sub/.well-known/acme-challenge/t0k-en_"] {
                #expect(try await client.get(path).status == 404, "\(path)")
            }
        }
    }

    @Test("/healthz accepts any host name, and pages do not; pages of other origins get neither")
    func health() async throws {
        let folder = try makeFolder()
        try await withServer([try .folder(folder.path)]) { _, address in
            for (path, status) in [("/healthz", 200), ("/", 403)] {
                let reply = try await PageClient(address).get(path, host: "balancer.example")
                #expect(reply.status == status)
                let page = try await PageClient(address).get(path, ["Origin": "https://elsewhere.example"])
                #expect(page.status == 403)
            }
        }
    }

    @Test("the first page source has precedence, and the next ones serve what it lacks")
    func precedence() async throws {
        let folder = try makeFolder()
        try folder.write("shared.txt", "folder".utf8)
        let large = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
        let sources: [PageSource] = [
            try .page("/first.txt", Array("first".utf8)),
            try .folder(folder.path, at: "/site", cacheControl: "max-age=60"),
            try .page("/site/shared.txt", Array("page".utf8)), try .page("/site/own.txt", Array("own".utf8)),
            try .page("/large.bin", large, headers: ["X-Own": "yes"]),
        ]
        try await withServer(sources) { _, address in
            let client = try PageClient(address)
            #expect(try await client.get("/first.txt").text == "first")
            #expect(try await client.get("/site/shared.txt").text == "folder")
            #expect(try await client.get("/site/own.txt").text == "own")
            #expect(try await client.get("/site").fields["location"] == "/site/")
            #expect(try await client.get("/site/").fields["cache-control"] == "max-age=60")
            #expect(try await client.get("/").status == 404)
            let page = try await client.get("/large.bin")
            #expect(page.body == large && page.fields["x-own"] == "yes")
            let tag = try #require(page.fields["etag"])
            #expect(try await client.get("/large.bin", ["If-None-Match": tag]).status == 304)
        }
        for path in ["site", "/a//b", "/../x", "/%zz"] {
            #expect(throws: TransportError.self) { try PageSource.page(path, []) }
        }
        #expect(throws: TransportError.self) { try PageSource.folder(folder.path + "/index.html") }
    }

    @Test("a link to the newest release may be changed while the server runs")
    func releases() async throws {
        let folder = try TemporaryFolder()
        for name in ["one", "two"] { try folder.write("\(name)/index.html", name.utf8) }
        try folder.link("current", to: "one")
        try await withServer([try .folder(folder.path + "/current")]) { _, address in
            let client = try PageClient(address)
            #expect(try await client.get("/").text == "one")
            try folder.link("next", to: "two")
            #expect(rename(folder.path + "/next", folder.path + "/current") == 0)
            #expect(try await client.get("/").text == "two")
        }
    }

    @Test("a large file arrives completely, its descriptor is open only meanwhile, and descriptors are limited")
    func descriptors() async throws {
        let folder = try TemporaryFolder()
        var large = Data((0..<4_093).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ $0 >> 4) })
        while large.count < 6_000_000 { large += large }
        large = large.prefix(6_000_000)
        try folder.write("large.bin", large)
        try folder.write("small.txt", "small".utf8)
        var limits = ServerLimits()
        limits.pages.openFiles = 2
        limits.pages.transferInterval = .seconds(3_600)
        try await withServer([try .folder(folder.path)], limits: limits) { server, address in
            let client = try PageClient(address)
            #expect(try await client.get("/large.bin").body == Array(large))
            #expect(await eventually { server.openPageCount == 0 })
            var silent: [PageClient] = []
            for _ in 0..<2 {
                let client = try PageClient(address, receiveBuffer: 4_096)
                try client.ask("/large.bin")
                silent.append(client)
            }
            #expect(await eventually { server.openPageCount == 2 })
            let reply = try await client.get("/large.bin")
            #expect(reply.status == 503 && reply.text.contains("pages.openFiles") && reply.fields["retry-after"] == "5")
            #expect(try await client.get("/small.txt").text == "small")
            #expect(try await client.get("/large.bin", method: "HEAD").fields["content-length"] == "6000000")
            silent = []
            #expect(await eventually { server.openPageCount == 0 })
            #expect(try await client.get("/large.bin").status == 200)
        }
    }

    @Test("while slow readers have all places, the slowest loses its place to the next request")
    func slowReaders() async throws {
        let folder = try TemporaryFolder()
        try folder.write("large.bin", Data(repeating: 7, count: 6_000_000))
        var limits = ServerLimits()
        limits.pages.openFiles = 2
        try await withServer([try .folder(folder.path)], limits: limits) { server, address in
            var silent: [PageClient] = []
            for _ in 0..<2 {
                let client = try PageClient(address, receiveBuffer: 4_096)
                try client.ask("/large.bin")
                silent.append(client)
            }
            #expect(await eventually { server.openPageCount == 2 })
            // Once the rates of the two are known.
            #expect(try await eventually { try await PageClient(address).get("/large.bin").status == 200 })
            #expect(await eventually { server.openPageCount == 1 })
            withExtendedLifetime(silent) {}
        }
    }

    @Test("health stays available, and a server without pages answers 426")
    func without() async throws {
        try await withServer([]) { _, address in
            let reply = try await PageClient(address).get("/")
            #expect(reply.status == 426)
            let health = try await PageClient(address).get("/healthz")
            #expect(health.text == "ok\n" && health.fields["connection"] == "close")
        }
        try await withServer([try .page("/healthz", Array("mine".utf8))]) { _, address in
            let health = try await PageClient(address).get("/healthz")
            #expect(health.text == "ok\n")
        }
    }

    @Test("other origins and rebound host names get no page")
    func origins() async throws {
        try await withServer([try .page("/x.txt", Array("x".utf8))]) { _, address in
            let rebound = try await PageClient(address).get("/x.txt", host: "evil.example")
            let foreign = try await PageClient(address).get("/x.txt", ["Origin": "http://evil.example"])
            let own = try await PageClient(address).get("/x.txt", host: "127.0.0.1:\(address.port)")
            #expect(rebound.status == 403 && foreign.status == 403 && own.status == 200)
        }
    }

    @Test("the schema is served to loopback, to everyone on request, and otherwise not at all")
    func schema() async throws {
        let page = [try PageSource.page("/x.txt", Array("x".utf8))]
        try await withServer(page) { _, address in
            let reply = try await PageClient(address).get("/schema.json")
            #expect(reply.status == 404)
        }
        try await withServer(page, schema: .localClients) { server, address in
            server.expose(CallerReportingActor.self, as: "mirrors/*") { _ in
                CallerReportingActor(actorSystem: server.actorSystem)
            }
            let reply = try await PageClient(address).get("/schema.json")
            #expect(reply.status == 200 && reply.fields["content-type"] == "application/json; charset=utf-8")
            let json = try #require(try JSONSerialization.jsonObject(with: Data(reply.body)) as? [String: Any])
            let actors = try #require(json["actors"] as? [String: String])
            #expect(actors.keys.sorted() == ["mirror", "mirrors/*"])
            #expect(actors["mirror"] == actors["mirrors/*"])
            let types = try #require(json["types"] as? [[String: Any]])
            #expect(types.map { $0["type"] as? String } == [actors["mirror"]])
            let methods = try #require(types.first?["methods"] as? [[String: Any]])
            #expect(!methods.isEmpty && methods.allSatisfy { $0["target"] is String && $0["arguments"] is Int })
            let forwarded = try await PageClient(address).get("/schema.json", ["X-Forwarded-For": "192.0.2.1"])
            #expect(forwarded.status == 404)
        }
        var access = AccessPolicy()
        access.trustedProxies = ["127.0.0.1"]
        access.origins = ["https://app.example"]
        try await withServer(page, access: access, schema: .localClients) { _, address in
            for headers in [[:], ["X-Forwarded-For": "192.0.2.1"], ["X-Forwarded-For": "127.0.0.1"]] {
                let reply = try await PageClient(address).get("/schema.json", headers)
                #expect(reply.status == 404)
            }
        }
        try await withServer(page, access: access, schema: .allClients) { _, address in
            let headers = ["X-Forwarded-For": "192.0.2.1"]
            let reply = try await PageClient(address).get("/schema.json", headers, host: "app.example")
            #expect(reply.status == 200)
        }
    }
}
