import Foundation
import Networking
import Synchronization
import TestSupport
import Transports
import WebSockets

/// A client that sends arbitrary messages with any callID, and records received messages.
final class TextClient: Sendable {
    private let socket: WebSocket
    private let inbox: Inbox

    init(_ address: SocketAddress) async throws {
        let inbox = Inbox()
        self.inbox = inbox
        var limits = WebSocketLimits()
        limits.handshakeTimeout = .seconds(40)
        socket = try await WebSocketClient.connect(
            to: "ws://\(address.host):\(address.port)/", subprotocols: ["trebuchet.v3"], limits: limits
        ) { _ in inbox }
    }

    func abort() { socket.abort() }
    /// The session ID of its connection.
    var session: String { socket.responseHeaders["Trebuchet-Session"] ?? "" }

    // MARK: Outbound

    func send(_ type: String, _ payload: String) { socket.send(text: #"{"type":"\#(type)","payload":{\#(payload)}}"#) }

    /// - Parameters:
    ///   - arguments: the JSON text of the arguments.
    ///   - more: the JSON text of further members.
    func call(_ callID: Int, _ actor: String, _ target: String, _ arguments: String, more: String = "") {
        send("invocation", String(callID), actor, target, #""arguments":\#(arguments)"# + more)
    }

    /// A call of an `@Idempotent` method whose response is recorded.
    func callOnce(_ callID: Int, _ actor: String, _ target: String, _ arguments: String, more: String = "") {
        call(callID, actor, target, arguments, more: #","session":"\#(session)""# + more)
    }

    /// Repeats a call that was sent over an earlier connection.
    func `repeat`(_ callID: Int, _ actor: String, _ target: String, _ arguments: String, of session: String) {
        send("repeat", String(callID), actor, target, #""arguments":\#(arguments),"session":"\#(session)""#)
    }

    func cancel(_ callID: Int) { cancel(String(callID)) }

    func call(_ callID: String, _ actor: String, _ target: String, _ arguments: [Int] = [], isRepeatable: Bool = false)
    {
        let session = isRepeatable ? #","session":"\#(session)""# : ""
        send("invocation", callID, actor, target, #""arguments":\#(arguments)\#(session)"#)
    }

    func observe(_ callID: String, _ actor: String, _ stream: String = "observeCount") {
        send("invocation", callID, actor, stream, #""arguments":[]"#)
    }

    /// Ends a stream.
    func unsubscribe(_ stream: Message) {
        send("streamEnd", #""streamID":"\#(stream.streamID)","reason":"clientUnsubscribed""#)
    }

    /// Stops reading until the test resumes it.
    func pause() async { await socket.reactor.perform { [socket] in socket.pauseReading() } }
    func resumeReading() async { await socket.reactor.perform { [socket] in socket.resumeReading() } }

    func resume(
        _ stream: Message, _ callID: String, _ actor: String, behind sequence: Int, _ target: String = "observeCount"
    ) {
        let seen = #""streamID":"\#(stream.streamID)","epoch":"\#(stream.epoch)","lastSequence":\#(sequence)"#
        send("streamResume", callID, actor, target, seen)
    }

    func cancel(_ callID: String) { socket.send(text: #"{"type":"cancel","payload":{"callID":"\#(callID)"}}"#) }

    private func send(_ type: String, _ callID: String, _ actor: String, _ target: String, _ more: String) {
        let place = #""actorID":"\#(actor)","targetIdentifier":"\#(target)""#
        socket.send(text: #"{"type":"\#(type)","payload":{"callID":"\#(callID)",\#(place),\#(more)}}"#)
    }

    // MARK: Inbound

    /// The received messages, oldest first.
    var messages: [Message] { inbox.messages.withLock { $0 } }
    func answers(_ callID: String) -> [Message] {
        messages.filter { $0.type == "response" && $0.callID == callID }
    }
    var starts: [Message] { messages.filter { $0.type == "streamStart" } }
    var versions: [Message] { messages.filter { $0.type == "streamData" } }

    /// The messages, and how the connection was closed.
    var texts: [String] { messages.map(\.text) + inbox.end.withLock { $0.map { [$0] } ?? [] } }

    /// The response to a call; nil when none arrives.
    func answer(_ callID: Int) async -> String? {
        var found: String?
        _ = await eventually {
            found = answers(String(callID)).first?.text
            return found != nil
        }
        return found
    }

    struct Message: Sendable {
        let text: String
        let type: String
        let callID: String
        let streamID: String
        let epoch: String
        let sequence: Int
        let error: String

        fileprivate init(_ bytes: UnsafeMutableRawBufferPointer) {
            text = String(decoding: bytes, as: UTF8.self)
            let envelope = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
            let payload = envelope?["payload"] as? [String: Any]
            type = envelope?["type"] as? String ?? ""
            callID = payload?["callID"] as? String ?? ""
            streamID = payload?["streamID"] as? String ?? ""
            epoch = payload?["epoch"] as? String ?? ""
            sequence = payload?["sequenceNumber"] as? Int ?? 0
            error = (payload?["error"] as? [String: Any])?["code"] as? String ?? payload?["code"] as? String ?? ""
        }
    }

    private final class Inbox: WebSocketHandler, Sendable {
        let messages = Mutex<[Message]>([])
        let end = Mutex<String?>(nil)

        func webSocket(_ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode)
        {
            let message = Message(message)
            messages.withLock { $0.append(message) }
        }
        func webSocketDidClose(_ socket: WebSocket, code: WebSocketCloseCode, reason: String) {
            end.withLock { $0 = "closed \(code) \(reason)" }
        }
    }
}
