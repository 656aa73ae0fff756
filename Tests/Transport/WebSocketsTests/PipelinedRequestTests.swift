import Bytes
import Networking
import Synchronization
import TestCertificates
import TestSupport
import Testing

import Transports
@testable import WebSockets

/// A client that sends much and reads late, so that the server's responses wait while its messages arrive.
@Suite("A client ahead of its responses", .timeLimit(.minutes(5)))
struct PipelinedRequestTests {
    private static let count = 60_000

    /// Checks that every response arrives, in order.
    private final class Checker: WebSocketHandler, Sendable {
        private let next = Mutex(0)
        let done: AsyncStream<String?>.Continuation

        init(_ done: AsyncStream<String?>.Continuation) { self.done = done }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            let number = message.loadUnaligned(as: UInt32.self)
            let expected = next.withLock { next in
                defer { next += 1 }
                return next
            }
            if number != expected { done.yield("\(number) came instead of \(expected)") }
            if number == PipelinedRequestTests.count - 1 { done.yield(nil) }
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            done.yield("closed: \(code) \(reason), before \(next.withLock { $0 })")
        }
    }

    @Test("a client that reads late gets all responses in order, over TLS and plain TCP", arguments: [false, true])
    func ahead(isSecure: Bool) async throws {
        let identity = TLSServerSettings(
            certificateChainFile: TestCertificate.path("server.pem"),
            privateKeyFile: TestCertificate.path("server.key"))
        let receivedFlags = Mutex<[Bool]>([])
        let server = try WebSocketServer(port: 0, tls: isSecure ? identity : nil) { upgrade in
            receivedFlags.withLock { $0.append(upgrade.isSecure) }
            return .accept(EchoHandler())
        }
        let (stream, done) = AsyncStream.makeStream(of: String?.self)
        let trust = TLSClientSettings(trust: .file(TestCertificate.path("ca.pem")))
        let socket = try await WebSocketClient.connect(
            to: "\(isSecure ? "wss" : "ws")://localhost:\(server.address.port)/", tls: trust
        ) { _ in Checker(done) }
        await socket.reactor.perform {
            socket.pauseReading()
            for number in 0..<Self.count {
                socket.send(.binary, expecting: 400) { buffer in
                    withUnsafeBytes(of: UInt32(number)) { buffer.append($0) }
                    buffer.append([UInt8](repeating: 1, count: 396))
                }
            }
        }
        // The server has stopped reading, since its responses are not received.
        #expect(
            await eventually {
                var waiting = 0
                for table in server.tables { waiting += await table.reactor.perform { table.table.pendingBytes } }
                return waiting > 256 << 10
            })
        await socket.reactor.perform { socket.resumeReading() }
        for await problem in stream {
            #expect(problem == nil)
            break
        }
        #expect(receivedFlags.withLock { $0 } == [isSecure])
        socket.abort()
        await server.shutdown()
    }
}
