import Bytes
import Foundation
import Networking
import TestCertificates
import TestSupport
import Testing
import Transports

@testable import Transfers

@Suite(.timeLimit(.minutes(5))) struct HTTPTransferTests {
    @Test("a document is fetched with a token, without a proxy of the environment")
    func get() async throws {
        setenv("http_proxy", "http://127.0.0.1:1", 1)
        defer { unsetenv("http_proxy") }
        let server = try TextServer("HTTP/1.1 200 OK\r\nX-A: one, two\r\nx-a:three\r\nContent-Length: 5\r\n\r\nhello")
        let response = try await HTTPTransfer.get(try server.endpoint("/a?b=c"), bearer: "secret")
        #expect(response.status == 200 && response.body == Array("hello".utf8))
        #expect(response.headers.list("X-A") == ["one", "two", "three"])
        let request = try #require(server.requests.entries.first)
        #expect(request.hasPrefix("GET /a?b=c HTTP/1.1\r\n"))
        #expect(request.contains("\r\nAuthorization: Bearer secret\r\n"))
        #expect(request.contains("\r\nAccept: application/json\r\n"))
        await server.close()
    }

    @Test("a document is posted without waiting for a server that does not know 100-continue")
    func post() async throws {
        let server = try TextServer("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        let json = Array((#"{"a":""# + String(repeating: "x", count: 3_000) + #""}"#).utf8)
        let response = try await HTTPTransfer.post(json, to: try server.endpoint("/"))
        #expect(response.status == 202 && response.body.isEmpty)
        let request = try #require(server.requests.entries.last)
        #expect(request.hasPrefix("POST / HTTP/1.1\r\n") && request.contains("\r\nContent-Length: \(json.count)\r\n"))
        #expect(request.contains("\r\nContent-Type: application/json\r\n"))
        await server.close()
    }

    @Test("a redirect is not followed")
    func redirect() async throws {
        let other = try TextServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        let server = try TextServer(
            "HTTP/1.1 302 Found\r\nLocation: \(try other.endpoint("/").description)\r\nContent-Length: 0\r\n\r\n")
        #expect(try await HTTPTransfer.get(try server.endpoint("/")).status == 302)
        #expect(other.requests.entries.isEmpty)
        await server.close()
        await other.close()
    }

    @Test(
        "an invalid, interrupted or large response is an error",
        arguments: [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + String(repeating: "x", count: 1001),
                TransportError.Code.tooLarge
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + String(repeating: "x", count: 1001),
                .tooLarge
            ),
            ("HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 1001) + "\r\n\r\n", .tooLarge),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", .closed), ("", .closed), ("220 hello\r\n", .handshake),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .closed),
        ])
    func invalid(_ answer: String, code: TransportError.Code) async throws {
        let server = try TextServer(answer)
        let error = try await #require(throws: TransportError.self) {
            try await HTTPTransfer.get(try server.endpoint("/x?key=secret"), maximumSize: 1000)
        }
        #expect(error.code == code, "\(error)")
        #expect(!error.message.isEmpty && !error.message.contains("secret"), "\(error)")
        await server.close()
    }

    @Test("a silent server is an error after the timeout, and a port without a server is refused")
    func silent() async throws {
        let server = try TextServer(nil)
        let endpoint = try server.endpoint("/")
        var error = try await #require(throws: TransportError.self) {
            try await HTTPTransfer.post([], to: endpoint, timeout: .milliseconds(100))
        }
        #expect(error.code == .timedOut, "\(error)")
        await server.close()
        error = try await #require(throws: TransportError.self) { try await HTTPTransfer.get(endpoint) }
        #expect(error.code == .refused, "\(error)")
    }

    @Test("a server whose certificate is not trusted is an error")
    func untrusted() async throws {
        let server = try TextServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", isSecure: true)
        let error = try await #require(throws: TransportError.self) {
            try await HTTPTransfer.get(try server.endpoint("/"))
        }
        #expect(error.code == .tls, "\(error)")
        #expect(server.requests.entries.isEmpty)
        await server.close()
    }

    @Test("silent servers do not delay requests to others")
    func concurrent() async throws {
        let silent = try TextServer(nil)
        let server = try TextServer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        let (slow, fast) = (try silent.endpoint("/"), try server.endpoint("/"))
        let waiting = (0..<20).map { _ in
            Task { try await HTTPTransfer.post([], to: slow, timeout: .seconds(2)) }
        }
        for _ in 0..<20 { #expect(try await HTTPTransfer.get(fast).status == 200) }
        for request in waiting { await #expect(throws: TransportError.self) { try await request.value } }
        await silent.close()
        await server.close()
    }
}

/// A server that sends one answer to each connection after its first request, and then ends it; without an answer it is silent.
private final class TextServer: Sendable {
    let requests = Journal()
    private let listener: Listener
    private let isSecure: Bool

    init(_ answer: String?, isSecure: Bool = false) throws {
        let context =
            isSecure
            ? try TLSContext.server(
                TLSServerSettings(
                    certificateChainFile: TestCertificate.path("server.pem"),
                    privateKeyFile: TestCertificate.path("server.key"))) : nil
        let requests = requests
        self.isSecure = isSecure
        listener = try Listener.bind(
            host: "127.0.0.1", port: 0, reactors: ReactorGroup.servers(count: 1).reactors
        ) { channel in
            if let context { try? channel.secure(with: context) }
            try? channel.start(Conversation(answer, requests))
        }
    }

    func endpoint(_ target: String) throws -> HTTPEndpoint {
        try HTTPEndpoint("\(isSecure ? "https" : "http")://127.0.0.1:\(listener.address.port)\(target)")
    }

    func close() async { await listener.close() }

    private final class Conversation: ByteChannelDelegate {
        private let answer: String?
        private let requests: Journal
        private var text = ""

        init(_ answer: String?, _ requests: Journal) { (self.answer, self.requests) = (answer, requests) }

        func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
            text += String(decoding: bytes, as: UTF8.self)
            guard let answer, let end = text.range(of: "\r\n\r\n")?.upperBound else { return }
            let length = text.range(of: "Content-Length: ").flatMap {
                Int(text[$0.upperBound...].prefix { $0.isNumber })
            }
            guard text[end...].utf8.count >= length ?? 0 else { return }
            requests.record(text)
            channel.write { $0.append(utf8: answer) }
            channel.closeAfterFlush()
        }

        func channelDidBecomeWritable(_ channel: ByteChannel) {}
        func channelDidClose(_ channel: ByteChannel, error: TransportError?) {}
    }
}
