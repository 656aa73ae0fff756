import Glibc
import Networking
import TestSupport
import Testing
import Trebuchet

/// Runs in a separate process with a low descriptor limit.
@Suite(.timeLimit(.minutes(5))) struct DescriptorExhaustionTests {
    @Test("without free descriptors a server stops accepting, serves its connections, and accepts again later")
    func exhaustion() async throws {
        let server = try ChildProcess(
            "/bin/sh", ["-c", "ulimit -n 40; exec \"$0\" serve --examples --port 0", ServeProcess.tool])
        let line = try #require(await server.nextLine())
        let match = try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+)/), "the server's output: \(line)")
        let port = try #require(Int(match.1))

        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        func call() async throws { _ = try await client.call(actor: "counter", target: "increment()", arguments: []) }
        try await call()
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: port))
        let silent = (0..<100).map { _ in PlainSocket(address) }
        for _ in 0..<10 { try await call() }
        // Waits in the kernel behind the silent connections, and is served once they have gone.
        let late = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        let connecting = Task { try await late.connect() }
        for _ in 0..<10 { try await call() }
        for socket in silent { socket.close(reset: true) }
        try await connecting.value
        await late.close()
        await client.close()
        server.signal(SIGTERM)
        _ = await server.finish()
    }
}
