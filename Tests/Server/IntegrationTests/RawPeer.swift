import Networking
import Synchronization
import Transports
import WebSockets

/// A client that knows the protocol and none of our types: it sends text and records received messages.
final class RawPeer: Sendable {
    let socket: WebSocket
    private let inbox: Inbox

    private init(socket: WebSocket, inbox: Inbox) {
        self.socket = socket
        self.inbox = inbox
    }

    static func connect(
        _ address: SocketAddress, subprotocols: [String] = ["trebuchet.v3"], headers: HTTPHeaders = [:]
    ) async throws -> RawPeer {
        var limits = WebSocketLimits()
        limits.messageBytes = 16 << 20
        limits.frameBytes = 16 << 20
        let inbox = Inbox()
        let socket = try await WebSocketClient.connect(
            to: "ws://\(address.host):\(address.port)/", subprotocols: subprotocols, headers: headers, limits: limits
        ) { _ in inbox }
        return RawPeer(socket: socket, inbox: inbox)
    }

    func send(_ text: String) { socket.send(text: text) }

    func invoke(_ callID: String, _ actor: String, _ target: String, _ arguments: String = "[]") {
        send(
            #"{"type":"invocation","payload":{"callID":"\#(callID)","actorID":"\#(actor)","#
                + #""targetIdentifier":"\#(target)","arguments":\#(arguments)}}"#)
    }

    /// The connection's name at the server.
    var session: String { socket.responseHeaders["Trebuchet-Session"] ?? "" }

    /// The number of the server's reactor that the connection is on, of two.
    var reactorIndex: UInt64? {
        session.split(separator: ".").dropFirst().first.flatMap { UInt64($0, radix: 36) }.map { $0 % 2 }
    }

    /// Sends a call whose response is recorded: a new call of this connection, or a repeat of a call of an earlier connection.
    func call(
        _ callID: String, _ actor: String, _ target: String, _ arguments: String = "[]", of session: String? = nil
    ) {
        send(
            #"{"type":"\#(session == nil ? "invocation" : "repeat")","payload":{"callID":"\#(callID)","actorID":"\#(actor)","#
                + #""targetIdentifier":"\#(target)","arguments":\#(arguments),"session":"\#(session ?? self.session)"}}"#
        )
    }

    /// Sends all messages of `body` in one write.
    func together(_ body: @escaping @Sendable () -> Void) async { await socket.reactor.perform { body() } }

    /// The next message; nil when the connection has ended.
    func next() async throws -> Message? { try await inbox.next().map(Message.init) }

    /// The text of the next message; nil when the connection has ended.
    func nextText() async -> String? { await inbox.next() }

    /// Received messages that were not read yet.
    var waitingCount: Int { inbox.count }

    func close() { socket.close() }
    func abort() { socket.abort() }
    func pauseReading() async { await socket.reactor.perform { self.socket.pauseReading() } }
    func resumeReading() async { await socket.reactor.perform { self.socket.resumeReading() } }

    /// Received messages in order. One reader.
    private final class Inbox: WebSocketHandler, Sendable {
        private struct Contents {
            var messages: [String] = []
            var taken = 0
            var isClosed = false
            var reader: CheckedContinuation<String?, Never>?
        }

        private let contents = Mutex(Contents())

        var count: Int { contents.withLock { $0.messages.count - $0.taken } }

        func next() async -> String? {
            await withCheckedContinuation { continuation in
                let ready: String?? = contents.withLock { contents in
                    if contents.taken < contents.messages.count {
                        contents.taken += 1
                        return contents.messages[contents.taken - 1]
                    }
                    if contents.isClosed { return .some(nil) }
                    contents.reader = continuation
                    return nil
                }
                if let ready { continuation.resume(returning: ready) }
            }
        }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            let text = String(decoding: message, as: UTF8.self)
            let reader = contents.withLock { contents in
                contents.messages.append(text)
                let reader = contents.reader
                if reader != nil { contents.taken += 1 }
                contents.reader = nil
                return reader
            }
            reader?.resume(returning: text)
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            let reader = contents.withLock { contents in
                contents.isClosed = true
                let reader = contents.reader
                contents.reader = nil
                return reader
            }
            reader?.resume(returning: nil)
        }
    }
}
