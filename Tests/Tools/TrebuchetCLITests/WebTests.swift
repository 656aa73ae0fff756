import Foundation
import TestSupport
import Testing

/// The client for the web: its committed files match their source, and its tests pass. They run in Node, some against the program beside
/// these tests.
@Suite(.timeLimit(.minutes(5))) struct WebTests {
    private static let script = packageRoot.appendingPathComponent("scripts/web").path

    @Test("Web/dist is generated from Web/src, its types are correct, and each file is within its size limit")
    func upToDate() async throws {
        let outcome = try await ChildProcess("/bin/bash", [Self.script, "--check"], error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
    }

    @Test("the tests in Node pass, including those against a server")
    func node() async throws {
        setenv("TREBUCHET_TOOL", ServeProcess.tool, 1)
        let outcome = try await ChildProcess("/bin/bash", [Self.script, "--test"], error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("# skipped 0"), "\(outcome.output)")
    }
}
