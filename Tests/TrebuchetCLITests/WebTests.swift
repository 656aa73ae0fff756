import Foundation
import TestSupport
import Testing

/// The client for the web: what is committed of it is what its source gives, and does what its tests say. They run in Node, some against
/// the program beside these tests.
@Suite(.timeLimit(.minutes(5))) struct WebTests {
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("scripts/web").path

    @Test("Web/dist is what Web/src gives, its types are right, and each file is as small as it must be")
    func upToDate() async throws {
        let outcome = try await ChildProcess("/bin/bash", [Self.script, "--check"], error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
    }

    @Test("the tests in Node pass, those against a server among them")
    func node() async throws {
        setenv("TREBUCHET_TOOL", ServeProcess.tool, 1)
        let outcome = try await ChildProcess("/bin/bash", [Self.script, "--test"], error: .merged).finish()
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("# skipped 0"), "\(outcome.output)")
    }
}
