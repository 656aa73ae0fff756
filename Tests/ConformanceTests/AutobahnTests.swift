import Foundation
import Testing
import TrebuchetTesting

/// The 301 cases of the Autobahn suite that need no compression; `kosoku` of PyPI runs them.
@Suite(.timeLimit(.minutes(2)), .serialized) struct AutobahnTests {
    @Test("no case against the server fails")
    func server() throws {
        let server = try ServeProcess(command: ["bench", "echo-server"])
        defer { server.stop() }
        try PythonPeer("autobahn_server", [server.url + "/"]).expectOK()
    }

    @Test("no case against the client fails")
    func client() throws {
        let cases = try PythonPeer("autobahn_client")
        let port = try #require(cases.nextLine())
        let client = Process()
        client.executableURL = ServeProcess.tool
        client.arguments = ["bench", "autobahn-client", "--url", "ws://127.0.0.1:\(port)", "--agent", "trebuchet"]
        client.standardOutput = FileHandle.nullDevice
        try client.run()
        cases.expectOK()
        client.waitUntilExit()
        #expect(client.terminationStatus == 0)
    }
}
