import Foundation
import Glibc
import Networking
import Testing
import Trebuchet
import TrebuchetTesting

/// In a process of its own, whose limit is low.
@Suite(.timeLimit(.minutes(1))) struct DescriptorExhaustionTests {
    @Test("without descriptors left a server stops accepting, serves those it has, and goes on when some are free")
    func exhaustion() async throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let server = Process()
        server.executableURL = URL(fileURLWithPath: "/bin/sh")
        let tool = URL(fileURLWithPath: program).deletingLastPathComponent().appendingPathComponent("trebuchet").path
        server.arguments = ["-c", "ulimit -n 40; exec \"$0\" serve --port 0", tool]
        let output = Pipe()
        server.standardOutput = output
        try server.run()
        defer { server.terminate() }
        var text = ""
        while !text.contains("\n") {
            let data = output.fileHandleForReading.availableData
            try #require(!data.isEmpty, "the server said: \(text)")
            text += String(decoding: data, as: UTF8.self)
        }
        let match = try #require(text.firstMatch(of: /127\.0\.0\.1:(\d+)/))
        let port = try #require(Int(match.1))

        let client = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        try await client.connect()
        func call() async throws { _ = try await client.call(actor: "counter", target: "increment()", arguments: []) }
        try await call()
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: port))
        let silent = (0..<100).map { _ in PlainSocket(address) }
        for _ in 0..<10 { try await call() }
        // Waits in the kernel behind the silent ones, and is served once they have gone.
        let late = TrebuchetClient(transport: .webSocket(host: "127.0.0.1", port: port))
        let connecting = Task { try await late.connect() }
        for _ in 0..<10 { try await call() }
        for socket in silent { socket.close(reset: true) }
        try await connecting.value
        await late.close()
        await client.close()
    }
}
