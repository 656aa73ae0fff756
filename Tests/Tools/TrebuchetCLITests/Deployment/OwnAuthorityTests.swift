import Foundation
import Glibc
import TestSupport
import Testing
import Trebuchet

/// The private certificate authority of Docs/Guides/HowTo.md, created with the commands of the page.
@Suite(.timeLimit(.minutes(5))) struct OwnAuthorityTests {
    @Test("a client with the authority of the page trusts its server, and no server of another authority")
    func certificates() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trebuchet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let commands = try #require(try DocumentedPage("Guides/HowTo.md").blocks("sh").first)
        for part in ["one", "other"] {
            let path = folder.appendingPathComponent(part).path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let made = try await ChildProcess("/bin/sh", ["-ec", "cd \(path)\n" + commands], error: .merged).finish()
            #expect(made.status == 0, "\(made.output)")
        }
        let path = folder.appendingPathComponent("one").path
        let server = try await ServeProcess(
            arguments: ["--tls-cert", path + "/server.pem", "--tls-key", path + "/server.key"])
        let url = server.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
        func call(_ url: String, authority: String) async throws -> ChildProcess.Outcome {
            try await ChildProcess(
                ServeProcess.tool,
                ["call", "--url", url, "--ca-file", folder.appendingPathComponent(authority).path, "counter"]
                    + ["increment()"],
                error: .captured
            ).finish()
        }
        #expect(try await call(url, authority: "one/ca.pem").output == "1\n")
        #expect(try await call(server.url, authority: "one/ca.pem").output == "2\n")
        let foreign = try await call(url, authority: "other/ca.pem")
        #expect(foreign.status == 1)
        #expect(foreign.error.contains("--ca-file must contain the certificate of its authority"), "\(foreign.error)")
        let unknown = try await ChildProcess(
            ServeProcess.tool, ["call", "--url", url, "counter", "increment()"], error: .captured
        ).finish()
        #expect(unknown.status == 1)
        #expect(unknown.error.contains("pass its certificate with --ca-file FILE"), "\(unknown.error)")
        await server.stop()
    }
}
