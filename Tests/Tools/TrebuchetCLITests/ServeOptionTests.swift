import Foundation
import Glibc
import TestSupport
import Testing

/// Options of `serve` that name files and addresses.
@Suite(.timeLimit(.minutes(5))) struct ServeOptionTests {
    @Test("serve refuses a named pipe as the file of an option, instead of waiting for it")
    func pipes() async throws {
        let pipe = NSTemporaryDirectory() + "trebuchet-\(UUID())"
        #expect(mkfifo(pipe, 0o600) == 0)
        defer { unlink(pipe) }
        for arguments in [
            ["--oidc", pipe], ["--admin", "127.0.0.1:0", "--admin-token-file", pipe],
            ["--inspector", "--inspector-token-file", pipe], ["--tls-cert", pipe, "--tls-key", pipe],
        ] {
            let outcome = try await ChildProcess(
                "/usr/bin/timeout", ["20", ServeProcess.tool, "serve", "--port", "0"] + arguments, error: .captured
            ).finish()
            #expect([1, 2].contains(outcome.status), "\(arguments): \(outcome)")
            #expect(outcome.error.contains("not a regular file"), "\(arguments): \(outcome)")
        }
    }

    @Test("serve accepts IPv6 addresses in the brackets of URLs")
    func brackets() async throws {
        let server = try await ServeProcess(arguments: ["--host", "[::1]"])
        #expect(server.url.hasPrefix("ws://[::1]:"), "\(server.url)")
        #expect(await server.stop() == 0)
    }
}
