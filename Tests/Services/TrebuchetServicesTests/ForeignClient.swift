import Networking
import Transports
import TrebuchetWire
import WebSockets

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

/// A client that uses the protocol without the package's types: it sends text, and receives messages in order.
final class ForeignClient: Sendable {
    struct Message: Sendable {
        let type: String
        let payload: JSONObject

        var callID: String? { payload["callID"]?.string }
        /// The result of a response.
        var result: JSONValue? { payload["result"] }
        /// The approximate size in bytes.
        let byteCount: Int
    }

    private let socket: WebSocket
    private let messages: AsyncStream<Message>

    private init(_ socket: WebSocket, _ messages: AsyncStream<Message>) {
        self.socket = socket
        self.messages = messages
    }

    static func connect(_ address: SocketAddress, token: String? = nil) async throws -> ForeignClient {
        let (messages, inbox) = AsyncStream.makeStream(of: Message.self)
        var limits = WebSocketLimits()
        limits.messageBytes = 16 << 20
        limits.frameBytes = 16 << 20
        let headers: HTTPHeaders = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
        let socket = try await WebSocketClient.connect(
            to: "ws://\(address.host):\(address.port)/", subprotocols: ["trebuchet.v3"], headers: headers,
            limits: limits
        ) { _ in Inbox(inbox) }
        return ForeignClient(socket, messages)
    }

    func invoke(_ callID: String, _ actor: String, _ target: String, _ arguments: String) {
        socket.send(
            text: #"{"type":"invocation","payload":{"callID":"\#(callID)","actorID":"\#(actor)","#
                + #""targetIdentifier":"\#(target)","arguments":\#(arguments)}}"#)
    }

    /// Nil when the connection has ended. Only one reader at a time.
    func next() async -> Message? {
        var messages = messages.makeAsyncIterator()
        return await messages.next()
    }

    /// The messages before a response, and the response.
    func answer(_ callID: String) async -> (before: [Message], answer: Message?) {
        var before: [Message] = []
        while let message = await next() {
            if message.callID == callID, message.type != "streamStart" { return (before, message) }
            before.append(message)
        }
        return (before, nil)
    }

    func close() { socket.close() }

    private final class Inbox: WebSocketHandler, Sendable {
        private let inbox: AsyncStream<Message>.Continuation

        init(_ inbox: AsyncStream<Message>.Continuation) { self.inbox = inbox }

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            let value = try? JSONValue(json: UnsafeRawBufferPointer(message))
            guard case .object(let members)? = value, case .string(let type)? = members["type"],
                case .object(let payload)? = members["payload"]
            else { return }
            inbox.yield(Message(type: type, payload: payload, byteCount: message.count))
        }

        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) { inbox.finish() }
    }
}
