import Networking
import Synchronization
import TestSupport
import Testing
import Transports
import WebSockets

/// A client that sends what it is told to, and keeps what comes.
final class RawPeer: Sendable {
    private let socket: WebSocket
    private let inbox: Inbox

    private init(_ socket: WebSocket, _ inbox: Inbox) { (self.socket, self.inbox) = (socket, inbox) }

    static func connect(to node: Node) async throws -> RawPeer {
        let address = try #require(node.address.withLock { $0 })
        let inbox = Inbox()
        var limits = WebSocketLimits()
        limits.handshakeTimeout = .seconds(40)
        let socket = try await WebSocketClient.connect(
            to: "ws://\(address.host):\(address.port)/", subprotocols: ["trebuchet.v3"], limits: limits
        ) { _ in inbox }
        return RawPeer(socket, inbox)
    }

    /// What its connection is called.
    var session: String { socket.responseHeaders["Trebuchet-Session"] ?? "" }
    var texts: [String] { inbox.texts.withLock { $0 } }
    func abort() { socket.abort() }

    func send(_ type: String, _ payload: String) { socket.send(text: #"{"type":"\#(type)","payload":{\#(payload)}}"#) }

    /// - Parameter more: members of the message beside.
    func call(_ callID: Int, _ actor: String, _ target: String, _ arguments: String, more: String = "") {
        send("invocation", Self.call(callID, actor, target, arguments) + more)
    }

    /// A call of an `@Idempotent` method whose answer is kept.
    func callOnce(_ callID: Int, _ actor: String, _ target: String, _ arguments: String) {
        call(callID, actor, target, arguments, more: #","session":"\#(session)""#)
    }

    /// Asks for a call that was sent over an earlier connection.
    func `repeat`(_ callID: Int, _ actor: String, _ target: String, _ arguments: String, of session: String) {
        send("repeat", Self.call(callID, actor, target, arguments) + #","session":"\#(session)""#)
    }

    func cancel(_ callID: Int) { send("cancel", #""callID":"\#(callID)""#) }

    private static func call(_ callID: Int, _ actor: String, _ target: String, _ arguments: String) -> String {
        #""callID":"\#(callID)","actorID":"\#(actor)","targetIdentifier":"\#(target)","arguments":\#(arguments)"#
    }

    /// The answer of a call; nil when none comes.
    func answer(_ callID: Int) async -> String? {
        let start = #"{"type":"response","payload":{"callID":"\#(callID)""#
        var found: String?
        _ = await eventually {
            found = texts.first { $0.utf8.starts(with: start.utf8) }
            return found != nil
        }
        return found
    }

    private final class Inbox: WebSocketHandler, Sendable {
        let texts = Mutex<[String]>([])

        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {
            let text = String(decoding: message, as: UTF8.self)
            texts.withLock { $0.append(text) }
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            texts.withLock { $0.append("closed \(code) \(reason)") }
        }
    }
}
