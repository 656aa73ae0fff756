import Foundation
import Networking
import TestCertificates
import Testing
import Trebuchet
import WebSockets

private func certificate(_ file: String) -> String { TestCertificate.path(file) }

private let serverSettings = TLSServerSettings(
    certificateChainFile: certificate("server.pem"), privateKeyFile: certificate("server.key"))
private let trusting = TLSClientSettings(trust: .file(certificate("ca.pem")))

@Suite(.timeLimit(.minutes(5))) struct TLSTests {
    private func withServer(
        _ settings: TLSServerSettings = serverSettings,
        _ body: (TrebuchetServer, SocketAddress) async throws -> Void
    ) async throws {
        let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0, tls: settings))
        await server.expose(SizedStateActor(actorSystem: server.actorSystem), as: "board")
        let address = try await server.start()
        do {
            try await body(server, address)
        } catch {
            await server.shutdown(drain: .zero)
            throw error
        }
        await server.shutdown(drain: .zero)
    }

    private func add(_ address: SocketAddress, _ settings: TLSClientSettings) async throws -> Int {
        let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: address.port, tls: settings))
        do {
            try await client.connect()
            let count = try await client.resolve(SizedStateActor.self, id: "board").add()
            await client.close()
            return count
        } catch {
            await client.close()
            throw error
        }
    }

    @Test("calls and states work over TLS, with the certificate and the host name checked")
    func callAndObserve() async throws {
        try await withServer { _, address in
            let client = TrebuchetClient(transport: .webSocket(host: "localhost", port: address.port, tls: trusting))
            try await client.connect()
            let board = try client.resolve(SizedStateActor.self, id: "board")
            #expect(try await board.add() == 1)
            // More than a record and than one socket write.
            try await board.fill(items: 200_000, padding: 1 << 20)
            let state = await board.observeState().first { _ in true }
            #expect(state?.items.count == 200_000)
            #expect(state?.padding.utf8.count == 1 << 20)
            await client.close()
        }
    }

    @Test("an untrusted peer is rejected, and the error gives the reason")
    func trust() async throws {
        try await withServer { _, address in
            let stranger = await #expect(throws: TransportError.self) { _ = try await add(address, .init()) }
            #expect(stranger?.code == .tls)
            #expect(stranger?.message.contains("certificate") == true)

            var misnamed = trusting
            misnamed.serverName = "example.com"
            let wrongName = await #expect(throws: TransportError.self) { _ = try await add(address, misnamed) }
            #expect(wrongName?.code == .tls)
            #expect(wrongName?.message.contains("hostname mismatch") == true)

            let careless = try await add(address, .init(trust: .insecure))
            let careful = try await add(address, trusting)
            #expect(careless == 1)
            #expect(careful == 2)
        }
    }

    @Test("TLS on only one side fails soon and without harm to others")
    func oneSided() async throws {
        try await withServer { _, address in
            let plain = TrebuchetClient(transport: .webSocket(host: "localhost", port: address.port))
            let plainError = await #expect(throws: TransportError.self) { try await plain.connect() }
            #expect(plainError?.message.contains("this port requires TLS: connect with wss: or https:") == true)
            let server = TrebuchetServer(transport: .webSocket(host: "127.0.0.1", port: 0))
            let other = try await server.start()
            let error = await #expect(throws: TransportError.self) { _ = try await add(other, trusting) }
            #expect(error?.code == .tls)
            #expect(error?.message.contains("the server does not use TLS at this port; connect with ws:") == true)
            await server.shutdown(drain: .zero)
            #expect(try await add(address, trusting) == 1)
        }
    }

    @Test("connections without a handshake block no others")
    func silentHandshakes() async throws {
        try await withServer { _, address in
            let silent = (0..<50).map { _ in PlainSocket(address) }
            for _ in 1...5 { _ = try await add(address, trusting) }
            #expect(try await add(address, trusting) == 6)
            for socket in silent { socket.close(reset: false) }
        }
    }

    @Test("the server requests a client certificate, and learns its identity")
    func clientCertificates() async throws {
        var settings = serverSettings
        settings.clientAuthorityFile = certificate("ca.pem")
        let server = try WebSocketServer(port: 0, tls: settings) { upgrade in
            .reject(HTTPResponse(status: upgrade.clientCertificateSubject == "CN=client" ? 403 : 404, text: ""))
        }
        let url = "wss://localhost:\(server.address.port)/"
        func refusal(_ tls: TLSClientSettings) async -> TransportError? {
            await #expect(throws: TransportError.self) {
                _ = try await WebSocketClient.connect(to: url, tls: tls) { _ in Inbox() }
            }
        }
        let unknown = await refusal(trusting)
        #expect(unknown?.code == .tls)
        var known = trusting
        known.certificateChainFile = certificate("client.pem")
        known.privateKeyFile = certificate("client.key")
        let refused = await refusal(known)
        #expect(refused?.message.contains("403") == true)
        await server.shutdown()
    }

    @Test("reloaded certificates apply to new connections; invalid files change nothing; old connections continue")
    func reload() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = (folder.appendingPathComponent("c.pem"), folder.appendingPathComponent("k.pem"))
        func install(_ name: String) throws {
            try Data(contentsOf: URL(fileURLWithPath: certificate("\(name).pem"))).write(to: files.0)
            try Data(contentsOf: URL(fileURLWithPath: certificate("\(name).key"))).write(to: files.1)
        }
        try install("server")
        let settings = TLSServerSettings(certificateChainFile: files.0.path, privateKeyFile: files.1.path)
        try await withServer(settings) { server, address in
            let old = TrebuchetClient(transport: .webSocket(host: "localhost", port: address.port, tls: trusting))
            try await old.connect()
            let board = try old.resolve(SizedStateActor.self, id: "board")
            #expect(try await board.add() == 1)

            try Data("no certificate".utf8).write(to: files.0)
            let error = #expect(throws: TransportError.self) { try server.reloadCertificates() }
            #expect(error?.message.contains(files.0.path) == true)
            #expect(try await add(address, trusting) == 2)

            try install("other")
            try server.reloadCertificates()
            await #expect(throws: TransportError.self) { _ = try await add(address, trusting) }
            let others = TLSClientSettings(trust: .file(certificate("other.pem")))
            #expect(try await add(address, others) == 3)
            #expect(try await board.add() == 4)
            await old.close()
        }
    }

    @Test("a second connection resumes the session of the first")
    func resumption() async throws {
        let server = try WebSocketServer(port: 0, tls: serverSettings) { _ in .accept(Echo()) }
        let url = "wss://localhost:\(server.address.port)/"
        var settings = trusting
        // A dedicated context, so that no session of another test is resumed.
        settings.serverName = "localhost"
        var resumed: [Bool] = []
        for _ in 0..<2 {
            let inbox = Inbox()
            let socket = try await WebSocketClient.connect(to: url, tls: settings) { _ in inbox }
            socket.send(text: "hello")
            // The ticket precedes the echo.
            for await _ in inbox.messages { break }
            resumed.append(await socket.reactor.perform { socket.isResumed })
            socket.abort()
        }
        #expect(resumed == [false, true])
        await server.shutdown()
    }
}

private final class Echo: WebSocketHandler {
    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        socket.send(opcode, UnsafeRawBufferPointer(message))
    }
}

private final class Inbox: WebSocketHandler, Sendable {
    let messages: AsyncStream<[UInt8]>
    private let continuation: AsyncStream<[UInt8]>.Continuation

    init() { (messages, continuation) = AsyncStream.makeStream() }

    func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode) {
        continuation.yield(Array(message))
    }
}
