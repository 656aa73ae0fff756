import Commands
import Glibc
import WebSockets

/// `trebuchet bench autobahn-client`: the client for the fuzzing server of the Autobahn suite. It queries the number of cases,
/// echoes the messages of each, and requests the reports.
enum AutobahnClient {
    static func run(_ arguments: ParsedArguments) async throws {
        var server = arguments.string("--url") ?? "ws://127.0.0.1:9001"
        while server.hasSuffix("/") { server.removeLast() }
        let agent = arguments.string("--agent") ?? "trebuchet"
        guard agent.utf8.allSatisfy(isUnreserved) else {
            throw UsageError("--agent \(agent): use only letters, digits, '-', '.', '_' and '~'")
        }
        let count = try await caseCount(server)
        for number in stride(from: 1, through: count, by: 1) {
            Progress.printLine("case \(number) of \(count)")
            for await _ in try await conversation("\(server)/runCase?case=\(number)&agent=\(agent)", echoes: true) {}
        }
        for await _ in try await conversation("\(server)/updateReports?agent=\(agent)", echoes: false) {}
        Console.print("ran \(count) cases against \(server) as \(agent); the verdicts are in the server's report")
    }

    private static func caseCount(_ server: String) async throws -> Int {
        var answer: [UInt8] = []
        for await message in try await conversation("\(server)/getCaseCount", echoes: false) { answer = message }
        guard let count = Int(String(decoding: answer, as: UTF8.self)), count >= 0 else {
            throw UsageError(
                "\(server) did not send the number of cases; is it a fuzzing server of the Autobahn suite?")
        }
        return count
    }

    /// The compression settings of the server, plus `client_no_context_takeover`, which some cases require.
    private static var compression: WebSocketCompression {
        var compression = EchoServer.compression
        compression.clientNoContextTakeover = true
        return compression
    }

    /// Connects and returns the received messages, unless they are echoed; ends with the connection.
    private static func conversation(_ url: String, echoes: Bool) async throws -> AsyncStream<[UInt8]> {
        let (messages, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        _ = try await WebSocketClient.connect(
            to: url, limits: .wide, compression: compression
        ) { _ in
            Peer(echoes ? nil : continuation, whenClosed: continuation.finish)
        }
        return messages
    }

    /// Returns whether a byte needs no escape in a query (RFC 3986 §2.3).
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
        default: false
        }
    }

    /// A connection that echoes or collects messages.
    private final class Peer: WebSocketHandler {
        private let messages: AsyncStream<[UInt8]>.Continuation?
        private let whenClosed: () -> Void

        /// Echoes if `messages` is nil.
        init(_ messages: AsyncStream<[UInt8]>.Continuation?, whenClosed: @escaping () -> Void) {
            self.messages = messages
            self.whenClosed = whenClosed
        }

        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {
            if let messages {
                messages.yield(Array(message))
            } else {
                socket.send(opcode, UnsafeRawBufferPointer(message))
            }
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { whenClosed() }
    }
}
