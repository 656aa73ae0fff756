import TestSupport
import Testing

/// The 301 cases of the Autobahn suite that need no compression; `kosoku` of PyPI runs them.
@Suite(.timeLimit(.minutes(5)), .serialized) struct AutobahnTests {
    @Test("the server passes all cases")
    func server() async throws {
        let server = try await ServeProcess(command: ["bench", "echo-server"])
        try await PythonPeer("autobahn_server", [server.url + "/"]).expectOK()
        await server.stop()
    }

    @Test("the client passes all cases")
    func client() async throws {
        let cases = try PythonPeer("autobahn_client")
        let port = try #require(await cases.nextLine())
        let client = try ChildProcess(
            ServeProcess.tool,
            ["bench", "autobahn-client", "--url", "ws://127.0.0.1:\(port)", "--agent", "trebuchet"])
        await cases.expectOK()
        #expect(await client.finish().status == 0)
    }
}
