import Foundation
import TestSupport
import Testing
import TrebuchetServices

@testable import TrebuchetCLI

/// The file of `serve --oidc`.
@Suite(.timeLimit(.minutes(5))) struct ProviderFileTests {
    @Test("a file names known providers, and defines others by their parts")
    func good() throws {
        let text = """
            [{"provider": "google", "clientID": "g", "linksAddresses": false}, {"provider":"apple","clientID":"a"},
             {"name": "work", "issuer": "https://a.b", "audience": ["app", "web"], "keys": "https://a.b/jwks"},
             {"issuer": "https://c.d", "audience": "app"}]
            """
        let providers = try ProviderFile.providers(Array(text.utf8))
        #expect(providers.map(\.name) == ["google", "apple", "work", "https://c.d"])
        #expect(providers.map(\.linksAccountsByEmail) == [false, true, true, true])
        #expect(providers[2].audiences == ["app", "web"])
        #expect(try ProviderFile.providers(Array("[ ]".utf8)).isEmpty)
    }

    @Test(
        "a problem in a file is reported with its line and its member",
        arguments: [
            ("{}", 1, "not a list"), ("[3]", 1, "not an object"), ("[\n{\n\"provider\": \"google\"\n}]", 2, "clientID"),
            ("[{\"provider\":\"google\",\n\"clientID\":\"\"}]", 2, "clientID: must not be empty"),
            ("[{\"provider\":\"gogle\",\n\"clientID\":\"x\"}]", 1, "provider: must be 'google' or 'apple'"),
            ("[{\"isuer\":\"https://a.b\"}]", 1, "did you mean 'issuer'?"),
            ("[{\"audience\":\"x\"}]", 1, "issuer: not a member of this provider"),
            ("[{\"issuer\":\"https://a.b\"}]", 1, "audience"),
            ("[{\"audience\":\"x\",\n\n\"issuer\":\"http://a.b\"}]", 3, "issuer: 'http://a.b"),
            ("[{\"audience\":\"x\",\"issuer\":\"https://a.b\",\n\"keys\":\"ftp://x\"}]", 2, "keys: 'ftp://x'"),
            ("[{\"audience\":\"x\",\"issuer\":\"https://a.b\",\n\"keys\":3}]", 2, "keys: must be a string"),
            ("[{\"audience\":[],\"issuer\":\"https://a.b\"}]", 1, "invalid JSON"),
            (
                "[{\"audience\":\"x\",\"issuer\":\"https://a.b\",\n\"linksAddresses\":1}]", 2,
                "linksAddresses: must be true or false"
            ),
            ("[{\"issuer\":\"https://a.b\",\n\"issuer\":\"https://a.b\"}]", 2, "issuer: duplicate member"),
            (
                "[{\"issuer\":\"https://a.b\",\"audience\":\"x\"},\n{\"issuer\":\"https://a.b\",\"audience\":\"x\"}]",
                2,
                "duplicate provider 'https://a.b'"
            ),
            ("[\n\n{\"issuer\" 3}]", 3, "invalid JSON"), ("[{}", 1, "invalid JSON"), ("[] x", 1, "invalid JSON"),
            ("", 1, "not a list"),
        ])
    func problems(_ text: String, line: Int, reason: String) throws {
        let problem = #expect(throws: ProviderFile.Problem.self) { try ProviderFile.providers(Array(text.utf8)) }
        #expect(problem?.line == line && problem?.text.contains(reason) == true, "\(String(describing: problem))")
    }

    @Test("a server with an invalid or missing file does not start")
    func serve() async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = folder + "/oidc.json"
        try "[\n{\"issuer\": \"http://a.b\",\n\"audience\": \"x\"}]".write(
            toFile: file, atomically: true, encoding: .utf8)
        for (arguments, reason) in [
            (["--oidc", file], "\(file):2: issuer"), (["--oidc", folder + "/none"], "No such file"),
            (["--services", "rooms", "--oidc", file], "--services with auth"),
        ] {
            let outcome = try await ChildProcess(
                ServeProcess.tool, ["serve", "--port", "0"] + arguments, error: .captured
            ).finish()
            #expect(outcome.status == 2 && outcome.error.contains(reason), "\(outcome.error)")
        }
    }
}
